/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the version that a program is compiled against. fkt_version() is the version of the library that it runs
 * with; docs/abi.md says which of them fit together. */
#ifndef FEDKT_VERSION_H
#define FEDKT_VERSION_H

#define FEDKT_VERSION_MAJOR 0
#define FEDKT_VERSION_MINOR 1
#define FEDKT_VERSION_PATCH 0

/* For #if: FEDKT_VERSION_NUMBER >= FEDKT_VERSION_OF(0, 2, 0) */
#define FEDKT_VERSION_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define FEDKT_VERSION_NUMBER FEDKT_VERSION_OF(FEDKT_VERSION_MAJOR, FEDKT_VERSION_MINOR, FEDKT_VERSION_PATCH)

#define FEDKT_VERSION_QUOTE_(x) #x
#define FEDKT_VERSION_JOIN_(x, y, z) FEDKT_VERSION_QUOTE_(x) "." FEDKT_VERSION_QUOTE_(y) "." FEDKT_VERSION_QUOTE_(z)
#define FEDKT_VERSION_STRING FEDKT_VERSION_JOIN_(FEDKT_VERSION_MAJOR, FEDKT_VERSION_MINOR, FEDKT_VERSION_PATCH)

#endif
