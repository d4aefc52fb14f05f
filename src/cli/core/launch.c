/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - finds out whether a launcher has started several processes, and joins them over the MPI plug-in.
 *
 *   mpirun -n 4 fedkt encode ...     OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK
 *   srun -n 4 fedkt encode ...       SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_LOCALID
 *   another MPI's mpiexec            PMI_SIZE, PMI_RANK, MPI_LOCALRANKID
 *
 * The variables decide, not MPI: a program that was started once does not load MPI, and one that was started several
 * times must not run several times for want of the plug-in, since all copies would write the same files. FEDKT_MPI=off
 * says that the copies are independent. Every process but the first is silent from its start, so that a mistake in the
 * options is printed once. */
#include "cli/core/launch.h"

#include "base/status.h"
#include "cli/core/log.h"
#include "cli/core/progress.h"
#include "cli/core/startup.h"
#include "mpi/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const struct launcher {
    const char *name, *size, *rank, *local; /* local: its number among the processes of its host */
    const char *hint;                       /* for processes that MPI does not connect */
} launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
     "use the mpirun of the MPI that fedkt was built with"},
    {"mpiexec", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "use the mpirun of the MPI that fedkt was built with"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID",
     "give srun --mpi=pmix, or set FEDKT_MPI=off for separate runs"},
};
enum { LATE = 3 }; /* seconds */
static const char *const sharing[] = {"encode", "moments", "simulate", "experiment"};

static struct {
    const struct launcher *by; /* NULL: alone */
    unsigned long size, rank;
    void *plugin;
    const struct fkt_mpi_plugin *mpi;
    struct fkt_ranks ranks;
} launch;

static unsigned long number(const char *variable)
{
    const char *text = getenv(variable);
    return text && *text >= '0' && *text <= '9' ? strtoul(text, NULL, 10) : 0;
}

static void look(void)
{
    const char *setting = getenv("FEDKT_MPI");
    if (setting && !strcmp(setting, "off")) return;
    if (getauxval(AT_SECURE))
        return; /* with more rights than its caller, whose variables must not make it load anything */
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!getenv(launchers[i].size)) continue;
        launch.size = number(launchers[i].size);
        launch.rank = number(launchers[i].rank);
        if (launch.size > 1) launch.by = &launchers[i];
        return; /* mpirun inside an allocation of Slurm: what mpirun says counts */
    }
}

/* Also of copies that are independent: they are on one host all the same. */
unsigned long cli_local_rank(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].local)) return number(launchers[i].local);
    return 0;
}

fkt_status cli_launch_begin(const char *verb)
{
    look();
    if (!launch.by) return FKT_OK;
    if (launch.rank) cli_log_silence();
    for (size_t i = 0; i < sizeof sharing / sizeof *sharing; i++)
        if (!strcmp(verb, sharing[i])) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG,
                         "start it once, or set FEDKT_MPI=off for separate runs; encode, moments, simulate and "
                         "experiment share their work",
                         "%s started '%s' %lu times", launch.by->name, verb, launch.size);
}

/* The plug-in beside the program, in an installation and in a build tree. */
static fkt_status load(void)
{
    static const char *const folders[] = {"lib", FKT_LIBRARY_FOLDER};
    char self[PATH_MAX], path[PATH_MAX + 128], *slash;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = '\0';
    slash = strrchr(self, '/');
    if (slash) *slash = '\0';
    for (size_t i = 0; slash && !launch.plugin && i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/../%s/fedkt/" FKT_MPI_PLUGIN, self, folders[i]);
        if (access(path, F_OK) != 0) continue;
        launch.plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* MPI loads parts of its own that look for its names */
        if (!launch.plugin) return fkt_fail(FKT_E_IO, "cannot load MPI: %s", dlerror());
    }
    if (launch.plugin) launch.mpi = dlsym(launch.plugin, FKT_MPI_SYMBOL);
    if (launch.mpi) return FKT_OK;
    return fkt_fail_hint(FKT_E_IO, "install the package fedkt-mpi, or build with FEDKT_MPI=ON (docs/cluster.md)",
                         "%s started %lu processes, and this fedkt has no MPI", launch.by->name, launch.size);
}

static fkt_status join_others(void)
{
    fkt_status st = load();
    if (st != FKT_OK) return st;
    /* MPI must not read the memory of another process, which is closed to others where it holds records. */
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    if (!launch.mpi->open(&launch.ranks, cli_stop_flag())) return fkt_fail(FKT_E_IO, "MPI cannot be started");
    if (launch.ranks.size != launch.size)
        return fkt_fail_hint(FKT_E_STATE, launch.by->hint, "%s started %lu processes, and MPI connects %u of them",
                             launch.by->name, launch.size, launch.ranks.size);
    return FKT_OK;
}

struct fkt_ranks *cli_ranks(void) { return launch.ranks.size > 1 ? &launch.ranks : NULL; }

int cli_first_rank(void) { return !cli_ranks() || !launch.ranks.rank; }

int cli_on_ranks(const struct cli_command *self, fkt_status (*run)(const void *ctx), const void *ctx)
{
    fkt_status st;
    int code;
    cli_keep_secrets(); /* all verbs that share their work hold records */
    st = launch.by ? join_others() : FKT_OK;
    if (st == FKT_OK) st = run(ctx);
    st = fkt_ranks_agree(cli_ranks(), st);
    code = cli_misuse(self, st);
    if (launch.ranks.size) launch.mpi->close(&launch.ranks, launch.ranks.failed == 2, code);
    return code;
}

void cli_launch_end(int code)
{
    if (!code || !launch.by || !launch.rank || launch.ranks.size) return;
    sleep(LATE);
    dprintf(STDERR_FILENO, "fedkt: rank %lu: %s\n", launch.rank, fkt_error_text());
}
