// SPDX-License-Identifier: Apache-2.0
// The login: a form that asks for the token, and the way back to what was asked for before.
#pragma once

#include "web/access.h"

// Sends a browser to the form, which leads back to what it has asked for.
void login_ask(struct evhttp_request *req);
// Takes the form's one field, "token=…": gives the cookie and leads back, or asks again. secure:
// over TLS.
void login_take(const struct access_rules *rules, bool secure, struct evhttp_request *req);
