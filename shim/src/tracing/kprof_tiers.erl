%% SPDX-License-Identifier: Apache-2.0
%% @doc What a trace traces: its tiers, some of them entries of requests, the markers and what
%% spawns, as trace patterns. And how many calls of its entries the sampler has left out.
-module(kprof_tiers).

-export([none/0, new/1, list/1, patterns/1, flags/1, has_entries/1, fields/1, take_off/2]).
-export([arm/3, sample/3, anew/3, stale/4, count_left_out/2, count_changing/3]).
-export([entered/1, disarmed/1, clear_tokens/1]).

-export_type([tiers/0, tier/0]).

-type tier() :: #{
    name := binary(),
    mfa := mfa(),
    returns := none | whole,
    entry := boolean(),
    kind := kprof_match:kind(),
    rows := [kprof_match:row()],
    stale := [kprof_slots:label()],
    spec := [tuple()]
}.

-record(tiers, {
    list = [] :: [tier()],
    % of the functions that spawn, those that are ours to trace
    spawns = [] :: [kprof_tracer:pattern()],
    % and of those that end an entry's request, of the running trace
    upgrades = [] :: [kprof_tracer:pattern()],
    flags = [] :: [garbage_collection | running],
    % there is an identity function
    named = false :: boolean(),
    % the sampling of entries that is in force
    one_in = 1 :: pos_integer(),
    % entry calls, at the last look; those before are told
    counted = undefined :: undefined | non_neg_integer()
}).
-opaque tiers() :: #tiers{}.

%% @doc Nothing.
-spec none() -> tiers().
none() ->
    #tiers{}.

%% @doc The tiers of these options, with their match specifications.
-spec new(kprof_options:options()) -> tiers().
new(#{tiers := List, identity_f := Fun, flags := Flags}) ->
    Prepared = kprof_match:prepare(Fun),
    #tiers{
        list = [
            begin
                {Kind, Rows} = kprof_match:rows(Prepared, MFA),
                Tier#{kind => Kind, rows => Rows, stale => [], spec => []}
            end
         || #{mfa := MFA} = Tier <- List
        ],
        flags = Flags,
        named = Fun =/= undefined
    }.

%% @doc The tiers.
-spec list(tiers()) -> [tier()].
list(#tiers{list = List}) ->
    List.

%% @doc All that is set.
-spec patterns(tiers()) -> [kprof_tracer:pattern()].
patterns(#tiers{list = List, spawns = Spawns, upgrades = Upgrades, flags = Flags}) ->
    kprof_mark:patterns(Flags) ++ Spawns ++ Upgrades ++
        [{MFA, Spec} || #{mfa := MFA, spec := Spec} <- List].

%% @doc Process flags that these tiers need besides those of every trace.
-spec flags(tiers()) -> [return_to].
flags(#tiers{list = List}) ->
    [return_to || lists:any(fun(#{returns := Returns}) -> Returns =:= none end, List)].

%% @doc Whether calls of some functions are requests.
-spec has_entries(tiers()) -> boolean().
has_entries(#tiers{list = List}) ->
    lists:any(fun(#{entry := Entry}) -> Entry end, List).

%% @doc What the collector is told of them.
-spec fields(tiers()) -> #{tiers := [map()], identity := none | ask | spec}.
fields(#tiers{list = List, named = Named}) ->
    Identity =
        case Named andalso lists:any(fun(#{kind := Kind}) -> Kind =:= ask end, List) of
            _ when not Named -> none;
            true -> ask;
            false -> spec
        end,
    #{tiers => [told(Tier) || Tier <- List], identity => Identity}.

told(#{name := Name, mfa := {M, F, A}, returns := whole}) ->
    #{name => Name, m => M, f => F, a => A};
told(#{returns := none} = Tier) ->
    (told(Tier#{returns := whole}))#{returns => none}.

%% @doc Without the tier of this function, which is told by the names of its module and itself; and
%% that tier, if there is one.
-spec take_off({M :: term(), F :: term(), A :: term()}, tiers()) -> {[tier()], tiers()}.
take_off(Wanted, #tiers{list = List} = Tiers) ->
    {Off, Stay} = lists:partition(
        fun(#{mfa := {M, F, A}}) ->
            {atom_to_binary(M, utf8), atom_to_binary(F, utf8), A} =:= Wanted
        end,
        List
    ),
    {Off, Tiers#tiers{list = Stay}}.

%% --- for the running trace ---

%% @doc For a trace that begins with the label base in these slots, and this sampling.
-spec arm(kprof_slots:slots(), kprof_sampling:sampling(), tiers()) -> tiers().
arm(Slots, Sampling, #tiers{list = List} = Tiers) ->
    Named = [MFA || #{mfa := MFA} <- List],
    %% a function that spawns may be a tier, or be traced by somebody else: then it is none of these
    Spawns = [
        Pattern
     || {MFA, _} = Pattern <- kprof_match:spawns(),
        not lists:member(MFA, Named),
        kprof_vm:function(MFA) =:= free
    ],
    Upgrades = [
        Pattern
     || has_entries(Tiers),
        {MFA, _} = Pattern <- kprof_entry:upgrades(kprof_slots:base(Slots)),
        not lists:member(MFA, Named),
        kprof_vm:function(MFA) =/= taken
    ],
    specs(Slots, Sampling, begin_counting(Tiers#tiers{spawns = Spawns, upgrades = Upgrades})).

begin_counting(Tiers) ->
    case has_entries(Tiers) of
        true ->
            ok = kprof_guard:counting(kprof_entry:count()),
            Tiers#tiers{counted = 0};
        false ->
            Tiers
    end.

%% @doc With another sampling.
-spec sample(kprof_slots:slots(), kprof_sampling:sampling(), tiers()) -> tiers().
sample(Slots, Sampling, Tiers) ->
    specs(Slots, Sampling, count_left_out(Slots, Tiers)).

%% @doc With the patterns that the slots ask for now.
-spec anew(kprof_slots:slots(), kprof_sampling:sampling(), tiers()) -> tiers().
anew(Slots, Sampling, Tiers) ->
    specs(Slots, Sampling, Tiers).

%% @doc With these labels of requests that are over for the tiers of these names, in place of those
%% that they had ({@link kprof_stale}).
-spec stale(
    kprof_slots:slots(), kprof_sampling:sampling(), #{binary() => [kprof_slots:label()]}, tiers()
) -> tiers().
stale(Slots, Sampling, Labels, #tiers{list = List} = Tiers) ->
    specs(Slots, Sampling, Tiers#tiers{
        list = [
            Tier#{stale := maps:get(Name, Labels, Before)}
         || #{name := Name, stale := Before} = Tier <- List
        ]
    }).

%% The patterns of entries are made for the running trace and its sampling.
specs(Slots, Sampling, #tiers{list = List, flags = Flags} = Tiers) ->
    OneIn = kprof_sampling:one_in(Sampling),
    How = #{
        flags => Flags,
        deaths => kprof_vm:kills_in_silence(),
        base => kprof_slots:base(Slots),
        olds => kprof_slots:old_bases(Slots),
        one_in => OneIn,
        takes => kprof_slots:takes(Slots)
    },
    Tiers#tiers{
        one_in = OneIn,
        list = [
            Tier#{spec := spec(Entry, Rows, How#{returns => Returns, stale => Stale})}
         || #{entry := Entry, rows := Rows, returns := Returns, stale := Stale} = Tier <- List
        ]
    }.

spec(true, Rows, How) -> kprof_entry:spec(Rows, How);
spec(false, Rows, How) -> kprof_match:spec(Rows, How).

%% @doc Counts the entry calls that the sampler left out since the last time, as unsampled requests.
-spec count_left_out(kprof_slots:slots(), tiers()) -> tiers().
count_left_out(_, #tiers{counted = undefined} = Tiers) ->
    Tiers;
count_left_out(Slots, #tiers{counted = Before, one_in = OneIn} = Tiers) ->
    Now = erlang:system_info(trace_control_word),
    ok = kprof_slots:count_unsampled(Slots, kprof_entry:unsampled(Before, Now, OneIn)),
    Tiers#tiers{counted = Now}.

%% @doc The same where the sampling has changed, once the patterns of `After' stand. `Before' had
%% them until then. Entry calls since `After' was made were sampled as one of the two tells, and
%% nobody knows which as what: those are counted that both leave out, so that no request is told
%% twice.
-spec count_changing(kprof_slots:slots(), tiers(), tiers()) -> tiers().
count_changing(Slots, #tiers{one_in = Old}, #tiers{one_in = New, counted = Since} = After) when
    is_integer(Since)
->
    Now = erlang:system_info(trace_control_word),
    ok = kprof_slots:count_unsampled(Slots, kprof_entry:unsampled(Since, Now, Old, New)),
    After#tiers{counted = Now};
count_changing(_, _, After) ->
    After.

%% @doc Whether an entry has been called, sampled or not.
-spec entered(tiers()) -> boolean().
entered(#tiers{counted = undefined}) -> false;
entered(#tiers{counted = Counted}) -> Counted > 0 orelse erlang:system_info(trace_control_word) > 0.

%% @doc Nothing is set any longer, and no calls are counted.
-spec disarmed(tiers()) -> tiers().
disarmed(Tiers) ->
    Tiers#tiers{counted = undefined}.

%% @doc Takes the tokens of its entries off all processes, as far as nobody else's are there.
-spec clear_tokens(tiers()) -> ok.
clear_tokens(Tiers) ->
    case has_entries(Tiers) andalso kprof_entry:clear_tokens() of
        foreign ->
            logger:notice(
                "kprof: this node uses seq_trace itself, so kprof's tokens are not taken away: "
                "they get lost by themselves"
            );
        _ ->
            ok
    end.
