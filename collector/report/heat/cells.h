// SPDX-License-Identifier: Apache-2.0
// What the JSON object and the script of a picture both read.
#pragma once

#include "codec/json.h"
#include "report/heat.h"

// Notes of what is hot, and how long columns and cells are.
void heat_put_grid_notes(struct heat_answer *a);
// The profiles that it is of, as a key of an object that is open: profiles.
void heat_put_pieces(struct json *j, const struct heat_answer *a);
// The columns, rows and cells, as keys of an object that is open.
void heat_put_cells(struct json *j, const struct heat *h);
// The heat maps of a profile of samples for the viewer's file, as one object: of each metric of
// which there is something, and of looks that found something always. id: the profile's number; the
// stretch as in struct heat_choice. False without memory.
bool heat_put_maps(struct json *j, const struct profile *p, int64_t id, int64_t last,
                   uint64_t from_us, uint64_t until_us);
