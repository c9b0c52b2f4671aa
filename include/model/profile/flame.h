// SPDX-License-Identifier: Apache-2.0
// Profiles as a tree of weighted frames, for whatever draws them or writes them to a file: one
// metric, grouped, depth first. Two profiles, or two parts of one, can be weighed in the same tree,
// to be compared. One thread at a time.
#pragma once

#include "model/profile/profile.h"

enum flame_metric {
    FLAME_WALL,    // ns, whatever the process did
    FLAME_SELF,    // ns, of functions that ran
    FLAME_WAITING, // ns, waiting for others
    FLAME_ASLEEP,  // ns, scheduled out
    FLAME_GC,      // ns, garbage collection
    FLAME_CALLS,   // calls
    // of samples (samples.h), what stands in the weights:
    FLAME_SAMPLES,        // looks at processes
    FLAME_ACTIVE,         // those at which they had run since the look before, or did not answer
    FLAME_REDUCTIONS,     // that they had done since the look before
    FLAME_MEMORY,         // bytes, the mean of each process, and so are queue and binary
    FLAME_MEMORY_GROWTH,  // bytes more than at the look before,
    FLAME_MEMORY_RELEASE, // and less
    FLAME_QUEUE,          // messages
    FLAME_QUEUE_GROWTH,
    FLAME_BINARY, // bytes off the heap
    FLAME_BINARY_GROWTH,
    FLAME_BINARY_RELEASE,
    FLAME_METRICS
};
enum { SAMPLE_METRICS = FLAME_METRICS - FLAME_SAMPLES }; // how many are of samples
// The metric's name, as in --metric; and what it counts: "ns", "calls", "samples", "reductions",
// "bytes" or "messages".
const char *flame_metric_name(enum flame_metric metric);
const char *flame_metric_unit(enum flame_metric metric);
// Whether it is a time, and not a number of something.
bool flame_metric_is_time(enum flame_metric metric);
// Whether profiles of a kind have it.
bool flame_metric_is_of(enum flame_metric metric, enum profile_kind kind);
// The metric of a name; false: there is none.
bool flame_metric_parse(const char *name, enum flame_metric *metric);

enum flame_group {
    FLAME_UNGROUPED,
    FLAME_BY_IDENTITY,
    FLAME_BY_PROCESS,
    // of samples:
    FLAME_BY_STATUS,
    FLAME_BY_APPLICATION,
    FLAME_BY_MEMORY,
    FLAME_BY_QUEUE,
    FLAME_GROUPS
};
// The group's name, as in --group; and the group of a name: false: there is none.
const char *flame_group_name(enum flame_group group);
bool flame_group_parse(const char *name, enum flame_group *group);

struct flame_options {
    enum flame_metric metric;
    enum flame_group group; // the lowest frames
    bool no_asleep;         // of FLAME_WALL: without what processes slept
    const char *only;       // requests of this identity; NULL: all
    bool every;             // of samples: all looks, also those that weigh nothing; by any metric,
                            // not only the one that the profile is weighed by
};

// A frame of the tree. Names are the profile's, and valid as long as that is.
struct flame_frame {
    const char *name;
    const char *module;      // "" of what is no function
    const char *application; // "" when it is not known
    uint8_t kind;            // enum stack_frame_kind
};

// What a node weighs, itself and with all above it.
struct flame_weight {
    int64_t total;
    int64_t self;
};

// A node: depth first, children by kind and name. Node 0 is the root.
struct flame_node {
    uint32_t frame;
    uint32_t parent; // the root has itself
    uint32_t depth;  // 0: the root
    uint32_t end;    // the first node behind it that is not above it
    struct flame_weight weight;
    struct flame_weight before; // of what was added as FLAME_BEFORE
    uint64_t calls;             // of the frame there, of what was added as FLAME_AFTER
    uint64_t calls_before;      // and as FLAME_BEFORE
};

struct flame_tree {
    struct flame_frame *frames;
    struct flame_node *nodes;
    uint32_t frame_count, node_count;
    uint32_t deepest; // depth
    uint32_t frame_room, node_room;
    struct map by_frame, by_node; // while weights are added
};

enum flame_side { FLAME_AFTER, FLAME_BEFORE };

// An empty tree. False without memory.
bool flame_tree_init(struct flame_tree *t);
void flame_tree_free(struct flame_tree *t);
// Adds a profile's weights. It must outlive the tree. False without memory: the tree may only be
// freed then.
bool flame_tree_add(struct flame_tree *t, const struct profile *p,
                    const struct flame_options *options, enum flame_side side);
// All is added: puts the nodes in order, and adds up what is above each. False without memory.
bool flame_tree_finish(struct flame_tree *t);

// The nodes of a finished tree that the profile's weights are of, one for each of them; UINT32_MAX:
// of none. The profile and the options are those that were added, with `every`. False without
// memory.
bool flame_tree_places(struct flame_tree *t, const struct profile *p,
                       const struct flame_options *options, uint32_t *nodes);

// The frames of one name of a tree, wherever they stand: in a table of functions.
struct flame_function {
    uint32_t frame;
    struct flame_weight weight; // total: where it stands above itself, counted once
    struct flame_weight before;
};
// The functions of a finished tree, by frame; free() them. NULL without memory.
struct flame_function *flame_tree_functions(const struct flame_tree *t);
