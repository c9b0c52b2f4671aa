// SPDX-License-Identifier: Apache-2.0
// Loads the library named by the first argument, as a VM does: all that it lacks must be here at
// once. The functions of the VM are those of a file that loads.sh makes, which end the program.
// nif_init tells what it offers.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <erl_nif.h>

int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: loads LIBRARY");
        return 1;
    }
    union {
        void *symbol;
        ErlNifEntry *(*init)(void);
    } nif = {dlsym(library, "nif_init")};
    const ErlNifEntry *entry = nif.symbol ? nif.init() : NULL;
    if (!entry || strcmp(entry->name, "kprof_native") != 0 || entry->num_of_funcs == 0) {
        fprintf(stderr, "it is no library of kprof_native's\n");
        return 1;
    }
    bool enabled = false;
    for (int i = 0; i < entry->num_of_funcs; i++) {
        enabled =
            enabled || (strcmp(entry->funcs[i].name, "enabled") == 0 && entry->funcs[i].arity == 3);
    }
    if (!enabled) {
        fprintf(stderr, "it is no tracer: enabled/3 is not in it\n");
        return 1;
    }
    printf("%s: ERL_NIF %d.%d, %d functions\n", entry->name, entry->major, entry->minor,
           entry->num_of_funcs);
    if (dlclose(library) != 0) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return 0;
}
