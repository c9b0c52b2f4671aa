%% SPDX-License-Identifier: Apache-2.0
%% @doc The control protocol, the shim's side: the messages that it sends, and what the collector's
%% mean. Who sends which when, and what the fields are, stands in include/codec/protocol.h.
-module(kprof_protocol).

-export([encode/1, decode/1, own_pid/1]).
-export([auth/4, answer/1, hello/0, data_hello/3]).
-export([event/1, p99/1, steered/3, steered/4]).
-export([full_started/1, full_shut/2, full_stopped/4, full_missed/2, full_named/2, flame/1]).
-export([stacks/1, stacks_started/3, stacks_taken/4, stacks_stopped/5]).
-export([
    tiers/1, started/2, stopped/2, total/2, clock/1, gap/3, identified/2, note/2, state/3
]).

-export_type([message/0, told/0, command/0]).

-define(VERSION, 1).

-type message() :: #{type := atom(), atom() => kprof_msgpack:value()}.
%% One to the collector.
-type command() ::
    pause
    | resume
    | {sample, {one_in | per_second, term()}}
    | {trigger, kprof_triggers:order()}
    | unknown.
-type told() ::
    {welcome, Session :: integer(), Key :: binary()}
    | {bye, Why :: string()}
    | {challenge, Nonce :: binary()}
    | {proven, Proof :: binary()}
    | {identify, Id :: integer(), {M :: binary(), F :: binary()}, Arguments :: binary()}
    | {disarm, {M :: term(), F :: term(), A :: term()}, Reason :: term()}
    | {stale, Tier :: term(), Label :: term()}
    | {stats, Rows :: [map()]}
    | {calls | slow, #{binary() => kprof_msgpack:value()}}
    | {p99, [{Tier :: binary(), Ms :: number()}]}
    | {steer, Id :: term(), command()}
    | {full, kprof_full:wanted()}
    | {full_stop, Id :: term()}
    | {full_more | full_names, Id :: term(), Processes :: [binary()]}
    | {flamed, kprof_flame:flamed()}
    | {stacks, kprof_stacks:wanted()}
    | {stacks_stop | stacks_anew, Id :: term()}
    | {stacks_kept, kprof_sample:told()}
    | {other, Type :: term()}.
%% One of the collector's. `other' is nothing that the shim knows, or not as it knows it.

%% @doc The bytes of a message, without the frame.
-spec encode(message()) -> iodata().
encode(Message) ->
    kprof_msgpack:encode(Message).

%% @doc What a message of the collector's says.
-spec decode(binary()) -> {ok, told()} | {error, term()}.
decode(Bytes) ->
    case kprof_msgpack:decode(Bytes) of
        {ok, #{<<"type">> := Type} = Map} -> {ok, told(Type, Map)};
        {ok, Map} when is_map(Map) -> {error, no_type};
        {ok, _} -> {error, no_map};
        Error -> Error
    end.

told(<<"welcome">>, #{<<"session">> := Id, <<"key">> := {bin, Key}}) ->
    {welcome, Id, Key};
told(<<"bye">>, Map) ->
    {bye, reason(Map)};
told(<<"challenge">>, #{<<"nonce">> := {bin, Nonce}}) ->
    {challenge, Nonce};
told(<<"proven">>, #{<<"proof">> := {bin, Proof}}) ->
    {proven, Proof};
told(<<"identify">>, #{
    <<"id">> := Id, <<"m">> := M, <<"f">> := F, <<"args">> := {bin, Arguments}
}) when is_integer(Id), is_binary(M), is_binary(F) ->
    {identify, Id, {M, F}, Arguments};
told(<<"disarm">>, #{<<"m">> := M, <<"f">> := F, <<"a">> := A} = Map) ->
    {disarm, {M, F, A}, maps:get(<<"reason">>, Map, <<"no reason given">>)};
told(<<"stale">>, #{<<"tier">> := Tier, <<"label">> := Label}) ->
    {stale, Tier, Label};
told(<<"stats">>, #{<<"rows">> := Rows}) when is_list(Rows) ->
    {stats, [Row || Row <- Rows, is_map(Row)]};
told(<<"calls">>, Map) ->
    {calls, Map};
told(<<"slow">>, Map) ->
    {slow, Map};
told(<<"p99">>, #{<<"tiers">> := Rows}) when is_list(Rows) ->
    {p99, [
        {Tier, Us / 1000}
     || #{<<"tier">> := Tier, <<"p99_us">> := Us} <- Rows, is_binary(Tier), is_number(Us)
    ]};
told(<<"steer">>, #{<<"id">> := Id} = Map) ->
    {steer, Id, command(Map)};
told(<<"full">>, #{<<"id">> := Id, <<"seconds">> := Seconds} = Map) when
    is_integer(Id), is_integer(Seconds), Seconds > 0
->
    {full, #{
        id => Id,
        seconds => Seconds,
        all => maps:get(<<"all">>, Map, false) =:= true,
        applications => texts(<<"applications">>, <<"name">>, Map),
        modules => texts(<<"modules">>, <<"name">>, Map),
        processes => texts(<<"processes">>, <<"pid">>, Map),
        label => maps:get(<<"label">>, Map, 0)
    }};
told(<<"full_stop">>, #{<<"id">> := Id}) ->
    {full_stop, Id};
told(<<"full_more">>, #{<<"id">> := Id} = Map) ->
    {full_more, Id, texts(<<"processes">>, <<"pid">>, Map)};
told(<<"full_names">>, #{<<"id">> := Id} = Map) ->
    {full_names, Id, texts(<<"processes">>, <<"pid">>, Map)};
told(<<"flamed">>, #{<<"profile">> := Profile} = Map) when is_integer(Profile), Profile >= 0 ->
    {flamed, kept(Profile, [requests, incomplete, others, unseen], Map)};
told(<<"stacks">>, #{<<"id">> := Id} = Map) when is_integer(Id) ->
    {stacks, #{
        id => Id,
        seconds => count(<<"seconds">>, Map),
        hz => within(1, 1000, 99, <<"hz">>, Map),
        top => within(1, 1000, 100, <<"top">>, Map),
        by => by(maps:get(<<"by">>, Map, <<"reductions">>)),
        every_ms => within(100, 3600000, 5000, <<"every_ms">>, Map),
        slice_s => count(<<"slice_s">>, Map),
        budget_ppm => within(1000, 500000, 20000, <<"budget_ppm">>, Map),
        registered => texts(<<"registered">>, <<"name">>, Map),
        processes => texts(<<"processes">>, <<"pid">>, Map),
        application => application(Map),
        labels => maps:get(<<"labels">>, Map, false) =:= true
    }};
told(<<"stacks_stop">>, #{<<"id">> := Id}) ->
    {stacks_stop, Id};
told(<<"stacks_anew">>, #{<<"id">> := Id}) ->
    {stacks_anew, Id};
told(<<"stacks_kept">>, #{<<"profile">> := Profile} = Map) when
    is_integer(Profile), Profile >= 0
->
    {stacks_kept, kept(Profile, [slice_s | maps:keys(kprof_sampler:no_totals())], Map)};
told(Type, _) ->
    {other, Type}.

%% What a profile has come to: its number, counts, and why it is so.
kept(Profile, Counts, Map) ->
    maps:from_list(
        [{profile, Profile}] ++
            [{Key, count(atom_to_binary(Key, utf8), Map)} || Key <- Counts] ++
            [
                {Key, line(maps:get(atom_to_binary(Key, utf8), Map, <<>>))}
             || Key <- [reason, text]
            ]
    ).

%% What somebody wants of so many is brought within what there may be.
within(Least, Most, Usual, Key, Map) ->
    case Map of
        #{Key := N} when is_integer(N) -> max(Least, min(Most, N));
        _ -> Usual
    end.

by(<<"reductions">>) -> reductions;
by(<<"memory">>) -> memory;
by(<<"message_queue_len">>) -> message_queue_len;
by(<<"binary">>) -> binary;
by(_) -> unknown.

application(#{<<"application">> := Name}) when is_binary(Name) -> Name;
application(_) -> <<>>.

count(Key, Map) ->
    case Map of
        #{Key := N} when is_integer(N), N >= 0 -> N;
        _ -> 0
    end.

line(Text) ->
    case reason(#{<<"reason">> => Text}) of
        "no reason given" -> <<>>;
        Line -> unicode:characters_to_binary(Line)
    end.

%% @doc The process of this node that a text of a message names, if it names one.
-spec own_pid(binary()) -> [pid()].
own_pid(Text) ->
    try list_to_pid(binary_to_list(Text)) of
        Pid when node(Pid) =:= node() -> [Pid];
        _ -> []
    catch
        error:badarg -> []
    end.

%% The texts under a key of the maps in a list.
texts(List, Key, Map) ->
    case maps:get(List, Map, []) of
        Maps when is_list(Maps) -> [Text || #{Key := Text} <- Maps, is_binary(Text)];
        _ -> []
    end.

command(#{<<"command">> := <<"pause">>}) ->
    pause;
command(#{<<"command">> := <<"resume">>}) ->
    resume;
command(#{<<"command">> := <<"sample">>, <<"one_in">> := N}) -> {sample, {one_in, N}};
command(#{<<"command">> := <<"sample">>, <<"per_second">> := N}) -> {sample, {per_second, N}};
command(#{<<"command">> := <<"sample">>}) -> {sample, {per_second, none}};
command(#{<<"command">> := <<"trigger_add">>} = Map) ->
    {trigger, {add, Map}};
command(#{<<"command">> := <<"trigger_list">>}) ->
    {trigger, list};
command(#{<<"command">> := <<"trigger_remove">>, <<"name">> := Name}) when is_binary(Name) ->
    {trigger, {remove, Name}};
command(#{<<"command">> := <<"trigger_remove">>, <<"all">> := true}) ->
    {trigger, {remove, all}};
command(_) ->
    unknown.

%% Why the collector says bye. It may be nobody's that is known: what goes to terminals and logs is
%% a line, and not long.
reason(#{<<"reason">> := Reason}) when is_binary(Reason) ->
    Text =
        case unicode:characters_to_list(binary:part(Reason, 0, min(400, byte_size(Reason)))) of
            Chars when is_list(Chars) -> Chars;
            % not UTF-8, or cut within a letter
            {_, Chars, _} -> Chars
        end,
    [
        case C < $\s orelse C >= 127 andalso C < 160 of
            true -> $?;
            false -> C
        end
     || C <- Text
    ];
reason(_) ->
    "no reason given".

%% --- before the hello, where there is a secret ---

%% @doc The first word of the handshake. `Certificate' is the hash of the collector's.
-spec auth(
    control | data, undefined | integer(), Certificate :: undefined | binary(), Nonce :: binary()
) -> message().
auth(Role, Session, Certificate, Nonce) ->
    maps:from_list(
        [{type, auth}, {protocol, ?VERSION}, {role, Role}, {nonce, {bin, Nonce}}] ++
            [{session, Session} || Session =/= undefined] ++
            [{certificate, {bin, Certificate}} || Certificate =/= undefined]
    ).

%% @doc The answer to a challenge.
-spec answer(Proof :: binary()) -> message().
answer(Proof) ->
    #{type => answer, proof => {bin, Proof}}.

%% --- hello ---

%% @doc Of the control connection.
-spec hello() -> message().
hello() ->
    Version =
        case application:get_key(kprof, vsn) of
            {ok, V} -> list_to_binary(V);
            undefined -> <<"unknown">>
        end,
    #{
        type => hello,
        role => control,
        protocol => ?VERSION,
        node => node(),
        otp => list_to_binary(erlang:system_info(otp_release)),
        os_pid => list_to_integer(os:getpid()),
        ticks_per_second => erlang:convert_time_unit(1, second, native),
        time_offset => erlang:time_offset(),
        creation => erlang:system_info(creation),
        version => Version
    }.

%% @doc Of a data connection; raw bytes follow.
-spec data_hello(integer(), Key :: binary(), Stream :: non_neg_integer()) -> message().
data_hello(Session, Key, Stream) ->
    #{
        type => hello,
        role => data,
        protocol => ?VERSION,
        session => Session,
        key => {bin, Key},
        stream => Stream
    }.

%% --- of a trace ---

%% @doc What is traced, and what is wanted back.
-spec tiers(map()) -> message().
tiers(Fields) ->
    Fields#{type => tiers}.

%% @doc Tracing begins; requests' labels start with `Labels'. `Tracer' is what is traced to.
-spec started(non_neg_integer(), kprof_tracer:kind()) -> message().
started(Labels, Tracer) ->
    #{
        type => trace_started,
        at => erlang:monotonic_time(),
        labels => Labels,
        tracer => Tracer
    }.

%% @doc Tracing has ended.
-spec stopped(atom(), unicode:chardata()) -> message().
stopped(Reason, Text) ->
    #{
        type => trace_stopped,
        at => erlang:monotonic_time(),
        reason => Reason,
        text => text(Text)
    }.

%% @doc After that: how many messages there were in all, and how many of them were not sent.
-spec total(non_neg_integer(), {non_neg_integer(), non_neg_integer()}) -> message().
total(Labels, {Messages, Unsent}) ->
    #{type => trace_total, labels => Labels, messages => Messages, unsent => Unsent}.

%% @doc The time, and what stands in the ledger of that since the last time.
-spec clock(map()) -> message().
clock(Fields) ->
    Fields#{type => clock, at => erlang:monotonic_time(), time_offset => erlang:time_offset()}.

%% @doc Calls between these, in native time, may not have been traced, or of `messages' not known
%% for sure whose they are. `Text' tells which.
-spec gap(reload | flags | messages, {From :: integer(), Until :: integer()}, unicode:chardata()) ->
    message().
gap(Reason, {From, Until}, Text) ->
    #{type => gap, from => From, until => Until, reason => Reason, text => text(Text)}.

%% @doc The answer to the collector's question `Id'.
-spec identified(integer(), binary() | nil) -> message().
identified(Id, Identity) ->
    #{type => identify_reply, id => Id, identity => Identity}.

%% @doc Something for people to read.
-spec note(info | warning, unicode:chardata()) -> message().
note(Level, Text) ->
    #{type => note, level => Level, text => text(Text)}.

%% @doc Something that happened, which stands in the node's history, too.
-spec event(unicode:chardata()) -> message().
event(Text) ->
    (note(info, Text))#{history => true}.

%% @doc The tiers whose 99th percentile is to be told at each flush, from now on.
-spec p99([binary()]) -> message().
p99(Tiers) ->
    #{type => p99, tiers => [#{tier => Tier} || Tier <- Tiers]}.

%% @doc What the session does now, and why; `Fields' are the sampling's, and how often the breaker
%% has tripped.
-spec state(atom(), unicode:chardata(), map()) -> message().
state(State, Text, Fields) ->
    Fields#{type => state, state => State, text => text(Text)}.

%% @doc A full trace has begun; `Fields' are {@link kprof_full:fields/1}.
-spec full_started(map()) -> message().
full_started(Fields) ->
    Fields#{type => full_started}.

%% @doc It is about to end: what ends after `At', by {@link erlang:monotonic_time/0}, is not traced
%% to its end.
-spec full_shut(term(), integer()) -> message().
full_shut(Id, At) ->
    #{type => full_shut, id => Id, at => At}.

%% @doc It is over since then, by {@link erlang:monotonic_time/0}, and all is as it was before; or
%% it has not begun.
-spec full_stopped(term(), integer(), atom(), unicode:chardata()) -> message().
full_stopped(Id, At, Reason, Text) ->
    #{type => full_stopped, id => Id, at => At, reason => Reason, text => text(Text)}.

%% @doc This node wants a full trace; `Fields' are {@link kprof_flame:check/1}'s.
-spec flame(map()) -> message().
flame(Fields) ->
    Fields#{type => flame}.

%% @doc Processes that it goes through, too, and that had no flag, each with its name.
-spec full_missed(term(), [{binary(), unicode:chardata()}]) -> message().
full_missed(Id, Processes) ->
    #{type => full_missed, id => Id, processes => named(Processes)}.

%% @doc What processes are called that a full trace goes through.
-spec full_named(term(), [{binary(), unicode:chardata()}]) -> message().
full_named(Id, Processes) ->
    #{type => full_named, id => Id, processes => named(Processes)}.

named(Processes) ->
    [#{pid => Pid, name => text(Name)} || {Pid, Name} <- Processes].

%% @doc This node wants a run of stack sampling; `Fields' are those of {@link
%% kprof_sample_options:check/1}.
-spec stacks(map()) -> message().
stacks(Fields) ->
    Fields#{type => stacks}.

%% @doc Stacks are sampled since then.
-spec stacks_started(term(), integer(), unicode:chardata()) -> message().
stacks_started(Id, At, Text) ->
    #{type => stacks_started, id => Id, at => At, text => text(Text)}.

%% @doc What was sampled until then, in the form of {@link kprof_stack_records}; and the totals of
%% {@link kprof_sampler}.
-spec stacks_taken(term(), integer(), binary(), kprof_sampler:totals()) -> message().
stacks_taken(Id, At, Bytes, Totals) ->
    Totals#{type => stacks_taken, id => Id, at => At, bytes => {bin, Bytes}}.

%% @doc They are sampled no longer, or not at all.
-spec stacks_stopped(
    term(), integer(), atom(), unicode:chardata(), kprof_sampler:totals()
) -> message().
stacks_stopped(Id, At, Reason, Text, Totals) ->
    Totals#{type => stacks_stopped, id => Id, at => At, reason => Reason, text => text(Text)}.

%% @doc The answer to a tool's command.
-spec steered(term(), boolean(), unicode:chardata()) -> message().
steered(Id, Ok, Text) ->
    #{type => steered, id => Id, ok => Ok, text => text(Text)}.

%% @doc The answer to a tool's command about triggers, with those that there are, if it wants them.
-spec steered(term(), boolean(), unicode:chardata(), [map()]) -> message().
steered(Id, Ok, Text, Triggers) ->
    (steered(Id, Ok, Text))#{triggers => Triggers}.

text(Text) ->
    unicode:characters_to_binary(Text).
