// SPDX-License-Identifier: Apache-2.0
// The fast way through a message: nearly all of a stream begin with the same bytes, name one of a
// few functions and end in a time. What the slow way (message.c) found in one of them it leaves
// here, for the next ones.
#pragma once

#include "model/message/message.h"

// Reads a message that ends where the cursor does, if it is of the known shapes; the same as the
// slow way would, except that a returned value, which can be any size and is of no use, is not
// walked. Its end is known all the same: the stream's times have one form, and the last bytes hold
// nearly the time of the message before. Else returns false, with the cursor as it was.
bool message_learned(struct message_reader *r, struct cursor *c, struct message *m);

// A message of six elements begins at start, its pid at `at`.
void message_learn_start(struct message_reader *r, const uint8_t *start, const uint8_t *at,
                         struct term_pid pid);
// len bytes of a message, from the atom of its event to the end of its function, were read into m.
// Sets m->head.
void message_learn_head(struct message_reader *r, const uint8_t *head, size_t len,
                        struct message *m);
// A message's time was read into m.
void message_learn_time(struct message_reader *r, struct slice encoded, const struct message *m);
// What stands for a function in message.target: of its two atoms as encoded, one after the other,
// and its arity.
uint32_t message_target(struct slice name, uint32_t arity);
