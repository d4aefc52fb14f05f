/* SPDX-License-Identifier: Apache-2.0 */
/* advanced.h - the advanced tier, for programs that replace a part of the pipeline or the transport. It may change with
 * every minor version (docs/abi.md). The conventions are those of fedkt.h.
 *
 *   advanced/calibration.h  a codec's calibration from public latents
 *   advanced/moments.h      record vectors: coordinates, quantisation, adding up
 *   advanced/privacy.h      the mechanisms: noise in one place, or in shares
 *   advanced/synth.h        class Gaussians from noised moments that are not in a release
 *   advanced/secagg.h       the state machines of secure aggregation
 *   advanced/federation.h   aggregation parameters of a task; one round inside a process
 *   advanced/simulate.h     many sites in one process
 *   advanced/ranks.h        several processes that share the work of one call
 *   advanced/mailbox.h      the interface between a transport and the two sides of a task
 *   advanced/baselines.h    personalised federated learning by others, to compare with
 */
#ifndef FEDKT_ADVANCED_ADVANCED_H
#define FEDKT_ADVANCED_ADVANCED_H

#include "fedkt/advanced/baselines.h"
#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/mailbox.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/ranks.h"
#include "fedkt/advanced/secagg.h"
#include "fedkt/advanced/simulate.h"
#include "fedkt/advanced/synth.h"

#endif
