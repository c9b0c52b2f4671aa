%% SPDX-License-Identifier: Apache-2.0
%% @doc The control connection: reaching the collector, what the shim tells it, and what comes back.
%% {@link kprof_protocol} has the messages.
%%
%% While there is no connection nothing is told, and that is no error: whoever reconnects tells the
%% collector how things are then.
-module(kprof_control).

-export([
    new/1,
    name/1,
    reached/1,
    failure/2,
    connect/1,
    open_data/2,
    is_connected/1,
    finish/1,
    close/1,
    listen/1,
    event/2
]).
-export([tell/2, told/2]).

-export_type([control/0, failure/0, reached/0]).

-record(control, {
    % as people know it
    host :: string(),
    target :: kprof_link:target(),
    connection = undefined :: undefined | kprof_link:connection(),
    % from welcome, for the data connection
    session = undefined :: undefined | kprof_link:session()
}).
-opaque control() :: #control{}.
-type reached() :: {
    Host :: binary(), inet:port_number(), Secret :: binary(), false | kprof_tls:pem()
}.
-type failure() :: {collector, Host :: string(), inet:port_number(), Why :: term()}.

%% @doc To the collector of these options; not connected yet.
-spec new(kprof_options:options()) -> control().
new(#{collector := {Text, Host, Port}, secret := Secret, tls := Tls}) ->
    #control{host = Text, target = #{host => Host, port => Port, secret => Secret, tls => Tls}}.

%% @doc Where the collector listens.
-spec name(control()) -> {Host :: string(), inet:port_number()}.
name(#control{host = Host, target = #{port := Port}}) ->
    {Host, Port}.

%% @doc Where it listens and what it takes to be let in: the secret, empty without one, and what TLS
%% needs.
-spec reached(control()) -> reached().
reached(#control{host = Host, target = #{port := Port, secret := Secret, tls := Tls}}) ->
    Known =
        case Secret of
            undefined -> <<>>;
            _ -> Secret()
        end,
    {
        unicode:characters_to_binary(Host),
        Port,
        Known,
        Tls =/= undefined andalso kprof_tls:as_pem(Tls)
    }.

%% @doc What went wrong with the collector, as {@link kprof_error} knows it.
-spec failure(term(), control()) -> failure().
failure(Why, Control) ->
    {Host, Port} = name(Control),
    {collector, Host, Port, Why}.

%% @doc Connects: hello and welcome. What comes after is not read before {@link listen/1}.
-spec connect(control()) -> {ok, control()} | {error, failure()}.
connect(#control{target = Target} = Control) ->
    case kprof_link:connect(Target, kprof_protocol:hello()) of
        {ok, Connection, Session} ->
            {ok, Control#control{connection = Connection, session = Session}};
        {error, Why} ->
            {error, failure(Why, Control)}
    end.

%% @doc Opens a data connection that belongs to it, the one of this number; 0 begins a trace.
-spec open_data(control(), Stream :: non_neg_integer()) ->
    {ok, kprof_link:connection()} | {error, failure()}.
open_data(#control{target = Target, session = Session} = Control, Stream) ->
    case kprof_link:open_data(Target, Session, Stream) of
        {ok, _} = Ok -> Ok;
        {error, Why} -> {error, failure(Why, Control)}
    end.

%% @doc Whether there is a connection, as far as its owner has been told.
-spec is_connected(control()) -> boolean().
is_connected(#control{connection = Connection}) ->
    Connection =/= undefined.

%% @doc Waits until the collector has all that it was told, for a second at most. Nothing may be
%% told any more.
-spec finish(control()) -> ok.
finish(#control{connection = undefined}) -> ok;
finish(#control{connection = Connection}) -> kprof_link:finish(Connection).

%% @doc Closes the connection; closed already is fine.
-spec close(control()) -> control().
close(#control{connection = undefined} = Control) ->
    Control;
close(#control{connection = Connection} = Control) ->
    ok = kprof_link:close(Connection),
    Control#control{connection = undefined}.

%% @doc Has the next message sent to the owner, who gives it to {@link event/2}.
-spec listen(control()) -> ok.
listen(#control{connection = Connection}) ->
    % closed: its owner is told
    _ = kprof_link:active(Connection),
    ok.

%% @doc What a message that the owner got means; `none' when it is not of this connection.
-spec event(term(), undefined | control()) ->
    {message, kprof_protocol:told()} | {lost, Why :: unicode:chardata()} | none.
event({Tag, Socket, Bytes}, #control{connection = {_, Socket}} = Control) when
    Tag =:= tcp; Tag =:= ssl
->
    ok = kprof_guard:heard(),
    ok = listen(Control),
    case kprof_protocol:decode(Bytes) of
        {ok, {bye, Why}} ->
            {lost, ["it said: ", Why]};
        {ok, Message} ->
            {message, Message};
        {error, _} ->
            {lost, "it does not speak kprof's protocol"}
    end;
event({Tag, Socket}, #control{connection = {_, Socket}}) when
    Tag =:= tcp_closed; Tag =:= ssl_closed
->
    {lost, "it closed the connection"};
event({Tag, Socket, Why}, #control{connection = {_, Socket}}) when
    Tag =:= tcp_error; Tag =:= ssl_error
->
    {lost, kprof_error:network(Why)};
event(_, _) ->
    none.

%% --- telling ---

%% @doc Tells the collector something. Who hears of an error may leave it at that: the connection's
%% end is told to its owner, too.
-spec tell(kprof_protocol:message(), control()) -> ok | {error, term()}.
tell(_, #control{connection = undefined}) -> ok;
tell(Message, #control{connection = Connection}) -> kprof_link:send(Connection, Message).

%% @doc The same, where nobody has to hear of an error.
-spec told(kprof_protocol:message(), control()) -> ok.
told(Message, Control) ->
    _ = tell(Message, Control),
    ok.
