// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <sys/resource.h>

uint64_t open_files_allow(uint64_t wanted) {
    struct rlimit files, more;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return 0;
    }
    more = (struct rlimit){files.rlim_max < wanted ? files.rlim_max : wanted, files.rlim_max};
    if (files.rlim_cur < more.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0) {
        files = more;
    }
    return files.rlim_cur;
}
