// SPDX-License-Identifier: Apache-2.0
// The daemon: where server, pipeline and writer are wired together.
#pragma once

#include "app/options.h"

// Runs until SIGTERM or SIGINT. Returns the exit status; what went wrong is in the log.
int collector_run(const struct collector_options *options);
