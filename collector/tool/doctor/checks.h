// SPDX-License-Identifier: Apache-2.0
// The three places where kprof doctor looks.
#pragma once

#include "tool/doctor/findings.h"
#include "tool/reach.h"

// The collector, and the nodes as it knows them: d->rows. reach: how to get
// to it; its collector is set.
void doctor_collector(struct doctor *d, struct reach *reach);
// A database file.
void doctor_database(struct doctor *d, const char *path);
// A node itself, over the distribution. name is among d->names. cookie_file: NULL for the user's
// own.
void doctor_node(struct doctor *d, const char *name, const char *cookie_file);
