/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - a task's service and its signature, for task.c and for users of the address's parts. */
#ifndef FKT_TASK_SERVICE_H
#define FKT_TASK_SERVICE_H

#include "fedkt/task.h"

#include "base/status.h"
#include "task/task.h"

#include <jansson.h>

#define FKT_SERVICE_NAME 127 /* bytes of a site's name, at most */

/* Both fill t->service; the federation of t must be set. */
FKT_MUST_USE fkt_status fkt_service_make(struct fkt_task *t, const struct fkt_service_choices *c);
FKT_MUST_USE fkt_status fkt_service_take(struct fkt_task *t, const json_t *j); /* hostile */
FKT_MUST_USE fkt_status fkt_service_copy(struct fkt_service *out, const struct fkt_service *s, uint32_t sites);
void fkt_service_clear(struct fkt_service *s, uint32_t sites);
json_t *fkt_service_json(const struct fkt_service *s, uint32_t sites); /* a new reference, or NULL when out of memory */

/* "https://host[:port]" in parts; an IPv6 address comes without its brackets, no port is 443. FKT_E_ARG when it is
 * anything else. */
#define FKT_SERVICE_HOST 254
FKT_MUST_USE fkt_status fkt_service_address(const char *address, char host[FKT_SERVICE_HOST], uint16_t *port);
/* Checks a site's name: plain text of at most FKT_SERVICE_NAME bytes without a blank at either end. `where` begins
 * the message. */
FKT_MUST_USE fkt_status fkt_service_check_name(const char *name, const char *where);

FKT_MUST_USE fkt_status fkt_signature_take(struct fkt_signature *s, const json_t *j); /* hostile */
json_t *fkt_signature_json(const struct fkt_signature *s);

#endif
