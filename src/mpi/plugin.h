/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - the interface between the program and the MPI plug-in that it loads when a launcher has started it
 * (docs/decisions/0027-mpi.md). The program knows no MPI, and the plug-in nothing of the library. */
#ifndef FKT_MPI_PLUGIN_H
#define FKT_MPI_PLUGIN_H

#include "fedkt/advanced/ranks.h"

#include <signal.h>

#define FKT_MPI_PLUGIN "mpi.so"     /* in a folder fedkt beside the libraries */
#define FKT_MPI_SYMBOL "fkt_mpi_v1" /* of type struct fkt_mpi_plugin */

struct fkt_mpi_plugin {
    /* Joins the other processes; fills `out`. A value of *stop that is not 0 ends every wait with FKT_E_STOPPED.
     * Returns 0 when it could not join. */
    int (*open)(struct fkt_ranks *out, const volatile sig_atomic_t *stop);
    /* Ends the connection. lost 1: messages were lost, and all processes are ended with `code`, unless *stop says that
     * the launcher does so already. */
    void (*close)(struct fkt_ranks *ranks, int lost, int code);
};

#endif
