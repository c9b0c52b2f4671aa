// SPDX-License-Identifier: Apache-2.0
// What stands behind a ring's memory when ring_schedules.c compiles it (ring.h, RING_MODEL).
#pragma once

#include <stdint.h>

typedef uint64_t ring_atomic; // its value is the model's

enum model_order { MODEL_LOOSE, MODEL_ORDERED };

uint64_t model_load(const ring_atomic *at, enum model_order order);
void model_store(const ring_atomic *at, uint64_t value, enum model_order order);
uint64_t model_read(const uint64_t *at);
void model_write(const uint64_t *at, uint64_t value);

#define RING_ACQUIRE(at) model_load(at, MODEL_ORDERED)
#define RING_RELEASE(at, value) model_store(at, value, MODEL_ORDERED)
#define RING_READ(at) model_read(at)
#define RING_WRITE(at, value) model_write(at, value)
// mistakes that ring_mistakes.sh makes
#define RING_LOAD_LOOSE(at) model_load(at, MODEL_LOOSE)
#define RING_STORE_LOOSE(at, value) model_store(at, value, MODEL_LOOSE)
