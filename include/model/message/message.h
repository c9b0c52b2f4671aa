// SPDX-License-Identifier: Apache-2.0
// A trace message as the VM sends it (erts/emulator/beam/erl_trace.c; `erlang:trace/3`, Trace
// messages), reduced to what rebuilding requests needs. Decoding is pure and allocates nothing;
// slices point into the frame, those of a function's name perhaps into the reader.
//
//   {trace | trace_ts, Pid, call,           {M,F,A or Args} [, Note], [Ts]}
//   {trace | trace_ts, Pid, return_from,    {M,F,A}, Value, [Ts]}
//   {trace | trace_ts, Pid, exception_from, {M,F,A}, {Class, Value}, [Ts]}
//   {trace | trace_ts, Pid, return_to,      {M,F,A} | undefined, [Ts]}
//   {trace | trace_ts, Pid, gc_minor_start | gc_minor_end | gc_major_start | gc_major_end, Info,
//    [Ts]}
//   {trace | trace_ts, Pid, in | out | out_exited, {M,F,A} | 0, [Ts]}
//
// Note is what the shim's match specs build: {Token, Identity} or {Token, ask, Args}, and of tiers
// whose return values do not travel {Token, Caller, Identity, none} or {Token, Caller, ask, Args,
// none}, with Caller as in return_to. A call of an entry function that has given its process a new
// token says {Token, entry, Identity} or {Token, entry, ask, Args}, one that the sampler left out
// and that has taken the process's Token away says {Token, left_out, entry}, one of a tier that did
// so under the label of a request that is over {Token, left_out, over}. In other people's captures
// Token stands alone or somewhere in a tuple. Token is {Flags, Label, Serial, From, LastCount}.
// Flags of erlang:trace/3 may add elements before Ts.
#pragma once

#include "codec/term.h"

enum message_kind {
    MESSAGE_OTHER, // well formed, of no use here: seq_trace, spawn, link, …
    MESSAGE_CALL,
    MESSAGE_RETURN,
    MESSAGE_EXCEPTION,
    MESSAGE_RETURN_TO,
    MESSAGE_GC_START, // minor and major ones
    MESSAGE_GC_END,
    MESSAGE_OUT,    // the process is scheduled out,
    MESSAGE_IN,     // in again,
    MESSAGE_EXITED, // or dead
    // The process sends a message with its token, or takes one out of its mailbox and has its token
    // from now on. Of one message both tell the same label, serial and process that it came from.
    // Only the native tracer tells them.
    MESSAGE_SENT,
    MESSAGE_TAKEN
};

enum message_clock {
    MESSAGE_UNTIMED,
    MESSAGE_MONOTONIC, // time is in the node's ticks (monotonic_timestamp)
    MESSAGE_STRICT,    // the same, of strict_monotonic_timestamp
    MESSAGE_WALL       // time is nanoseconds since 1970 (timestamp, cpu_timestamp)
};

enum message_note {
    NOTE_NONE,
    NOTE_IDENTITY,  // note is the term of an identity, `undefined` when the call names nothing
    NOTE_ARGUMENTS, // note is the list of arguments, to ask the shim about
    NOTE_PROCESS    // of a return without its value: spawned is the process that this named
};

// What a call of an entry function did.
enum message_entry {
    ENTRY_NONE,    // nothing, or it is no entry function
    ENTRY_BEGINS,  // its process has a new token
    ENTRY_LEFT_OUT // its process has no token any more, whatever it called
};

// Of two messages of one process the one with the higher serial is the later one. This stands for
// it and for all higher ones.
#define MESSAGE_LAST_SERIAL ((1LL << 48) - 1)

struct message {
    enum message_kind kind;
    enum message_clock clock;
    enum message_note note_kind;
    enum message_entry entry;
    int64_t time;
    // as message_pid_text shows it; two processes of a node never share one at the same time
    uint64_t pid;
    // The function; name: both atoms as encoded, one after the other. Not set where head->meant
    // says what the function means.
    struct slice name;
    struct term_atom module;
    struct term_atom function;
    uint32_t arity;
    // stands for the function, never 0: of a call that a reader has learned, and of a return_to's
    uint32_t target;
    // the same for the function that the call returns to; 0: its return will say so itself
    uint32_t caller;
    struct slice arguments; // the list of arguments, when the call carries them
    bool has_token;
    uint64_t token; // stands for the label: equal labels have equal tokens
    // the process that the token came from, comparable with pid; of another node: message_process
    uint64_t from;
    // of the token: the clock that its sender had, which goes up with each message it sends or
    // gets; 0: none.
    uint64_t serial;
    // the serial of the message that the sender had got last when it sent this; 0: none. Both up to
    // MESSAGE_LAST_SERIAL
    uint64_t previous;
    // The same however high they are, in 64 bits. Only the native tracer tells them.
    uint64_t full_serial;
    uint64_t full_previous;
    struct slice note; // of a return: the value, empty where it did not come
    uint64_t spawned;  // comparable with pid
    // what a reader has learned about this kind of event and function; NULL: nothing
    struct message_head *head;
};

enum { MESSAGE_HEAD_BYTES = 96, MESSAGE_HEADS = 512, MESSAGE_PREFIX_BYTES = 280 };

// The bytes "call, {M, F, Arity}" (or return_from, exception_from) of messages, and what they say.
struct message_head {
    uint8_t bytes[MESSAGE_HEAD_BYTES];
    uint8_t len; // 0: this place is empty
    uint8_t kind;
    uint8_t arity;
    uint8_t name_at, name_len, module_at, module_len, function_at, function_len; // in bytes
    bool latin1;
    uint32_t target;
    bool meant;          // whether the reader's user has set
    const void *meaning; // what the function means to it
};

// What a stream's messages have in common, learned from them, so that most of each needs no second
// look. All zero at a stream's start.
struct message_reader {
    // of a timed message of six elements, from its tuple to the node of its pid
    uint8_t prefix[MESSAGE_PREFIX_BYTES];
    size_t prefix_len; // 0: none learned
    size_t pid_at;     // where in it the pid begins
    uint32_t creation; // of the node, as encoded
    // bytes of an atom before its text: 3 up to OTP 25, then 2; 0: none learned
    uint8_t atom_lead;
    // the last monotonic time came as a big integer of 8 bytes:
    bool big_time;
    int64_t time; // this one
    // bytes before a message's head, when all of the above is learned; else 0
    size_t known;
    struct message_head heads[MESSAGE_HEADS];
};

// The messages of one frame's term: a message, or a list of messages. Sets the cursor to the first
// and returns their number; 0 and a failed cursor when it is neither.
uint32_t message_frame(struct slice body, struct cursor *c);

// Decodes the message at the cursor and moves the cursor behind it. Returns false on anything that
// is no trace message; the frame's rest is lost then. `last`: the message ends where the cursor
// does. Then the returned value, which can be any size and is of no use, is not walked when the
// time at the end can be told without: it has the form and nearly the value of the one before.
bool message_decode(struct message_reader *reader, struct cursor *c, bool last,
                    struct message *message);

enum { MESSAGE_PID_BYTES = 32 };
// Writes a pid of the traced node as Erlang shows it there, "<0.123.0>".
void message_pid_text(uint64_t pid, char out[MESSAGE_PID_BYTES]);

// Reads that. False, and *pid is 0, when it is something else.
bool message_pid_parse(const char *text, uint64_t *pid);
// The number of a process of another node, as message.from has it: of that node's name and the
// number that the process has there. It is the same in every run, so that it may be stored.
uint64_t message_process(struct slice node, uint64_t pid);

// The process that a pid at the cursor names, as message.pid has it; 0 when it is no pid.
uint64_t message_pid(struct cursor *c);
