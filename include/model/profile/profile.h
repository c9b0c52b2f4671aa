// SPDX-License-Identifier: Apache-2.0
// A profile: stacks of a node, and what they weigh. It is made by a full trace of requests
// (full_trace.h) or of samples, drawn and compared as a tree (flame.h), and kept in the database.
//
// One thread at a time.
#pragma once

#include "model/message/message.h"
#include "model/profile/stacks.h"
#include "model/profile/timeline.h"
#include "model/profile/weights.h"

enum profile_kind { PROFILE_FULL, PROFILE_SAMPLES };

// What a weight is of: a stack, and the names (of stacks.names) of the request's identity and of
// the process, PROFILE_NOBODY where there is none.
enum { PROFILE_NOBODY = UINT16_MAX };
_Static_assert(2 * LIMIT_PROFILE_FRAMES < PROFILE_NOBODY, "names fit 16 bits");

static inline uint64_t profile_key(uint32_t stack, uint16_t identity, uint16_t process) {
    return (uint64_t)stack << 32 | (uint32_t)identity << 16 | process;
}
static inline uint32_t profile_key_stack(uint64_t key) {
    return (uint32_t)(key >> 32);
}
static inline uint16_t profile_key_identity(uint64_t key) {
    return (uint16_t)(key >> 16);
}
static inline uint16_t profile_key_process(uint64_t key) {
    return (uint16_t)key;
}

// What a full trace has got.
struct profile_counts {
    uint64_t requests;   // that the weights are of: complete ones
    uint64_t incomplete; // requests that are left out: messages were lost, or their joins unclear
    uint64_t others;     // complete requests of another identity than the one asked for
    uint64_t unseen;     // complete requests of which no function was traced
    uint64_t partly;     // requests of which only a part was traced; is not stored
    uint64_t refused;    // requests for which there was no room at the time
    uint64_t processes;  // that worked for requests
    uint64_t messages;   // of use, whether their requests are complete or not
    uint64_t bytes;      // of these; 0: not known
    uint64_t functions;  // that had patterns; 0: not known
    uint64_t lost;       // times that messages were lost
    int64_t duration_ns; // of the requests, begin to end
    int64_t parallel_ns; // what ran besides, while others of the same request did
    int64_t missing_ns;  // of duration_ns: what no process is known to have done
    int64_t stood_ns;    // for which patterns stood; 0: not known
    bool rested;         // meanwhile the tiers were not traced
};

enum {
    PROFILE_TEXT_BYTES = LIMIT_NAME_BYTES + 4,
    PROFILE_SETTINGS_BYTES = 1024,
    PROFILE_OTP_BYTES = 16,
    PROFILE_MISSED_BYTES = 132,
    PROFILE_IDENTITIES = 200 // that are told apart
};

// What a profile is of.
struct profile_head {
    enum profile_kind kind;
    char name[PROFILE_TEXT_BYTES]; // what it was asked for by; may be empty
    // of those that come by themselves, which have room of their own; else empty
    char label[PROFILE_TEXT_BYTES];
    char trigger[PROFILE_TEXT_BYTES]; // that began it; empty: none did. It is one of the settings
    char node[PROFILE_TEXT_BYTES];
    int64_t begin_ns, end_ns;              // since 1970 UTC
    char settings[PROFILE_SETTINGS_BYTES]; // a JSON object: what was asked for
    char otp[PROFILE_OTP_BYTES];           // the node's release; empty: not known
    bool asleep_in_self, gc_in_self;       // that time was not traced
};

// Requests of one identity.
struct profile_identity {
    uint16_t name;     // of stacks.names
    uint64_t requests; // in the profile
    int64_t ns;        // from begin to end
    uint64_t others;   // that only the tiers traced
    int64_t others_ns;
};

// A process that was not followed into, as it had no flag yet.
struct profile_missed {
    char pid[MESSAGE_PID_BYTES];
    char name[PROFILE_MISSED_BYTES]; // empty: it was gone
    uint64_t requests;               // that went through it
};

struct samples;

struct profile {
    struct profile_head head;
    struct stacks stacks;
    struct weights weights;  // by profile_key: ns of the stack itself, calls of its last frame
    uint32_t of_processes;   // of them: those that tell a process
    struct map applications; // a module's name (of stacks.names) -> its application's
    struct profile_counts counts;
    // those of which requests came; some may have none in the profile
    struct profile_identity identities[PROFILE_IDENTITIES];
    uint32_t identity_count;
    struct profile_missed missed[LIMIT_FULL_SUSPECTS];
    uint32_t missed_count;
    struct timeline timeline;   // of the longest of its requests; no events: there is none
    int64_t timeline_ns;        // how long that was
    uint16_t timeline_identity; // what it was called, a name of stacks.names
    struct samples *samples;    // of stack sampling (samples.h), its own; NULL: none
};

// Returns false without memory.
bool profile_init(struct profile *p);
void profile_free(struct profile *p);

// A module is an application's. Without memory, or when there are too many names, that stays
// unknown.
void profile_module(struct profile *p, struct slice module, struct slice application);
// The application of a module's name; "" when it is not known.
const char *profile_application(const struct profile *p, uint32_t module);

// Adds to a weight. What finds no room (LIMIT_PROFILE_WEIGHTS) goes to the stack below, and sets
// stacks.full. Of LIMIT_PROCESS_WEIGHTS processes are told, what comes then is nobody's.
// Returns the weight, valid until the next call; NULL without any room.
struct weight *profile_add(struct profile *p, uint64_t key, uint64_t calls, int64_t ns);
