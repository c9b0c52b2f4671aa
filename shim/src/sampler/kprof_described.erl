%% SPDX-License-Identifier: Apache-2.0
%% @doc What processes are called for people: registered name, else the label of OTP 27 and later;
%% the function that they began with; their application.
-module(kprof_described).

-export([new/0, describe/3, unknown/1]).

-export_type([applications/0]).

-define(NO_TEXT, <<>>).
-define(MOST_LEADERS, 1000).

-opaque applications() :: #{pid() => binary()}.
%% Those of group leaders, who are asked for once.

%% @doc None is known.
-spec new() -> applications().
new() ->
    #{}.

%% @doc What a process is called whose items {@link kprof_asker} has asked for.
-spec describe(pid(), [{term(), term()}], applications()) ->
    {kprof_stack_records:described(), applications()}.
describe(Pid, Items, Before) ->
    Value = fun(Key) -> proplists:get_value(Key, Items, undefined) end,
    {Application, Applications} = application(Value(group_leader), Before),
    Name = name(Value(registered_name), Value({dictionary, '$process_label'})),
    Initial = initial(
        Value({dictionary, '$initial_call'}), Value(initial_call), Value(current_stacktrace)
    ),
    {{Pid, Name, Initial, Application}, Applications}.

%% @doc One that has not answered.
-spec unknown(pid()) -> kprof_stack_records:described().
unknown(Pid) ->
    Name =
        case [N || N <- registered(), whereis(N) =:= Pid] of
            [Registered | _] -> atom_to_binary(Registered, utf8);
            [] -> ?NO_TEXT
        end,
    {Pid, Name, ?NO_TEXT, ?NO_TEXT}.

name(Name, _) when is_atom(Name), Name =/= undefined -> atom_to_binary(Name, utf8);
name(_, undefined) ->
    ?NO_TEXT;
name(_, Label) ->
    label(Label).

label(Label) when is_atom(Label) -> atom_to_binary(Label, utf8);
label(Label) ->
    case is_binary(Label) andalso unicode:characters_to_list(Label) of
        Text when is_list(Text) -> line(Text);
        _ -> line(io_lib:format("~0tP", [Label, 12]))
    end.

%% It may be anybody's text.
line(Text) ->
    Chars = lists:sublist(lists:flatten(Text), 255),
    unicode:characters_to_binary([
        case is_integer(C) andalso (C < $\s orelse C >= 127 andalso C < 160) of
            true -> $?;
            false -> C
        end
     || C <- Chars
    ]).

%% proc_lib's processes all begin with the same function, and remember whose they are. Where only
%% the whole dictionary would tell, it is the stack's outermost function that is not proc_lib's.
initial({M, F, A}, _, _) when is_atom(M), is_atom(F), is_integer(A) -> mfa(M, F, A);
initial(_, {proc_lib, _, _} = Initial, [_ | _] = Stack) -> outermost(Stack, Initial);
initial(_, {M, F, A}, _) -> mfa(M, F, A);
initial(_, _, _) -> ?NO_TEXT.

outermost(Stack, Initial) ->
    Frames = [{M, F, A} || {M, F, A, _} <- Stack, M =/= proc_lib],
    {M, F, A} = lists:last([Initial | Frames]),
    mfa(M, F, A).

mfa(M, F, A) ->
    unicode:characters_to_binary([
        atom_to_binary(M, utf8), $:, atom_to_binary(F, utf8), $/, integer_to_list(A)
    ]).

application(Leader, Before) ->
    case Before of
        #{Leader := Name} ->
            {Name, Before};
        _ ->
            Name =
                try application_controller:get_application(Leader) of
                    {ok, Application} -> atom_to_binary(Application, utf8);
                    undefined -> ?NO_TEXT
                catch
                    _:_ -> ?NO_TEXT
                end,
            {Name, (room(Before))#{Leader => Name}}
    end.

room(Applications) when map_size(Applications) < ?MOST_LEADERS -> Applications;
room(_) -> #{}.
