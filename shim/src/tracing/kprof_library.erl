%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds and loads the native tracer's library ({@link kprof_native}).
%%
%% A node that kprof is brought into has it in the environment of the application, as `libraries', a
%% map from the names of architectures to the bytes. It goes into a file in a new folder that only
%% this node's user may enter, and that is gone again once it is loaded. An application that has
%% kprof among its own finds the library in kprof's folder `priv'.
-module(kprof_library).

-export([load/0, architecture/0, carried/1]).

-export_type([libraries/0]).

-type libraries() :: #{Architecture :: binary() => binary()}.

-define(PREFIX, "kprof_native-").
% random bytes
-define(NAME, 16).

%% @doc Loads the library, unless that is done. The reason why it cannot be is a text for people.
-spec load() -> ok | {error, unicode:chardata()}.
load() ->
    case {kprof_native:is_loaded(), architecture()} of
        {true, _} -> ok;
        {false, none} -> {error, ["there is none for ", erlang:system_info(system_architecture)]};
        {false, Architecture} -> load(Architecture)
    end.

load(Architecture) ->
    case application:get_env(kprof, libraries, #{}) of
        #{Architecture := Bytes} ->
            if_whole(Bytes, "what kprof brought", fun() ->
                through_folders(Bytes, folders(), none)
            end);
        _ ->
            of_application(Architecture)
    end.

of_application(Architecture) ->
    File = filename:join(priv(), ?PREFIX ++ named(Architecture)),
    case file:read_file(File) of
        {ok, Bytes} ->
            if_whole(Bytes, File, fun() -> kprof_native:load(filename:rootname(File)) end);
        {error, enoent} ->
            {error, [File, " is not there: kprof was built without it"]};
        {error, Why} ->
            {error, [File, ": ", file:format_error(Why)]}
    end.

%% The loader maps what the head of a file says that there is: where that is not there, the VM dies.
if_whole(Bytes, What, Load) ->
    case is_whole(Bytes) of
        true -> Load();
        false -> {error, [What, " is not the whole library"]}
    end.

%% The sections' table stands at the end (elf(5)). (What OTP 25 makes of a pattern for that does not
%% load on OTP 29.)
is_whole(Bytes) when byte_size(Bytes) >= 64 ->
    binary:part(Bytes, 0, 6) =:= <<16#7f, "ELF", 2, 1>> andalso
        byte_size(Bytes) >= number(Bytes, 40, 8) + number(Bytes, 58, 2) * number(Bytes, 60, 2);
is_whole(_) ->
    false.

number(Bytes, At, Size) -> binary:decode_unsigned(binary:part(Bytes, At, Size), little).

priv() ->
    case code:priv_dir(kprof) of
        {error, bad_name} -> "priv";
        Folder -> Folder
    end.

%% @doc The one of this node; `none': there is no library for it.
-spec architecture() -> binary() | none.
architecture() ->
    Text = erlang:system_info(system_architecture),
    case {os:type(), string:split(Text, "-")} of
        {{unix, linux}, ["x86_64" | _]} -> <<"x86_64">>;
        {{unix, linux}, ["aarch64" | _]} -> <<"aarch64">>;
        _ -> none
    end.

%% @doc The libraries in a folder `priv', for the application's environment in another node.
-spec carried(file:filename()) -> libraries().
carried(Priv) ->
    maps:from_list([
        {Architecture, Bytes}
     || Architecture <- [<<"x86_64">>, <<"aarch64">>],
        {ok, Bytes} <- [file:read_file(filename:join(Priv, ?PREFIX ++ named(Architecture)))]
    ]).

named(Architecture) -> binary_to_list(Architecture) ++ ".so".

%% --- a file that nobody else can put anything into ---

%% One of them may be mounted so that nothing can be run from it.
folders() ->
    [Folder || Folder <- [os:getenv("TMPDIR", ""), "/tmp", "/var/tmp"], Folder =/= ""].

%% What is told is why it did not go in the first one.
through_folders(_, [], Why) ->
    Why;
through_folders(Bytes, [Parent | Parents], Before) ->
    case through_folder(Bytes, Parent) of
        ok -> ok;
        {error, _} = Error when Before =:= none -> through_folders(Bytes, Parents, Error);
        {error, _} -> through_folders(Bytes, Parents, Before)
    end.

through_folder(Bytes, Parent) ->
    Folder = filename:join(Parent, "kprof-" ++ name()),
    File = filename:join(Folder, "kprof_native.so"),
    case file:make_dir(Folder) of
        ok ->
            try
                written(file:change_mode(Folder, 8#700), File, Bytes)
            after
                _ = file:delete(File, [raw]),
                file:del_dir(Folder)
            end;
        {error, Why} ->
            {error, [Parent, ": ", file:format_error(Why)]}
    end.

%% Whoever could enter the folder before its mode was set may have left a file: it is not opened.
written(ok, File, Bytes) ->
    case file:open(File, [write, exclusive, raw, binary]) of
        {ok, Out} ->
            Written = file:write(Out, Bytes),
            Closed = file:close(Out),
            loaded(Written, Closed, file:read_file(File), Bytes, File);
        {error, Why} ->
            loaded({error, Why}, ok, none, Bytes, File)
    end;
written(Error, File, Bytes) ->
    loaded(Error, ok, none, Bytes, File).

%% What is there is what was written.
loaded(ok, ok, {ok, Bytes}, Bytes, File) ->
    kprof_native:load(filename:rootname(File));
loaded(Written, Closed, Read, _, File) ->
    Whys = [Why || {error, Why} <- [Written, Closed, Read]] ++ [eio],
    {error, [File, ": ", file:format_error(hd(Whys))]}.

name() ->
    string:lowercase(binary_to_list(binary:encode_hex(kprof_random:bytes(?NAME)))).
