/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - the sum of the entries of one account, and whether one more charge fits. */
#ifndef FKT_LEDGER_ACCOUNT_H
#define FKT_LEDGER_ACCOUNT_H

#include "fedkt/ledger.h"

#include "base/status.h"

#define FKT_LEDGER_DAMAGED "restore it from a backup; a damaged ledger must not be replaced by an empty one"

fkt_status fkt_ledger_damaged(const char *path, const char *what); /* FKT_E_FORMAT: the ledger '..' holds .. */

const char *fkt_accounting_name(enum fkt_accounting a);
int fkt_accounting_parse(const char *s); /* -1: unknown; s may be NULL */

/* Fills total and limit_mu2 from the rest. `path`, here and below, is for messages. */
FKT_MUST_USE fkt_status fkt_account_add_up(struct fkt_ledger_account *a, const char *path);
/* FKT_E_BUDGET unless `e` fits beside the entries. *spent: what the account then has. */
FKT_MUST_USE fkt_status fkt_account_fit(const struct fkt_ledger_account *a, const struct fkt_ledger_entry *e,
                                        const char *path, struct fkt_ledger_spent *spent);

#endif
