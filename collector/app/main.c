// SPDX-License-Identifier: Apache-2.0
#include "app/collector.h"
#include "base/log.h"

int main(int argc, char **argv) {
    struct collector_options options;
    log_start();
    int status = collector_options_parse(argc, argv, &options);
    return status >= 0 ? status : collector_run(&options);
}
