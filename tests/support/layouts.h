/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.h - layouts for tests that need no other. */
#ifndef FKT_TEST_LAYOUTS_H
#define FKT_TEST_LAYOUTS_H

#include "fedkt/layout.h"

/* A layout of one part, as a pointer that is valid to the end of the enclosing block. */
#define ONE_PART(of_length, of_rq) (&(struct fkt_moments_layout){.parts = 1, .length = {of_length}, .rq = {of_rq}})

#endif
