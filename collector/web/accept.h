// SPDX-License-Identifier: Apache-2.0
// Which form of the metrics a program takes, by the Accept header of its question. Pure.
#pragma once

#include "report/meters.h"

// The form with the highest q, of those with the same the first; protobuf only where it is asked
// for as io.prometheus.client.MetricFamily, delimited. Whoever names none of the forms, or nothing
// (NULL), gets the text of Prometheus.
enum meters_form accept_form(const char *accept);
