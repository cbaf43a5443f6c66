/*
 * inspect.h
 *	  What the functions for the DBA share.
 */
#ifndef FUUID_INSPECT_H
#define FUUID_INSPECT_H

#include "ordering_session.h"

extern Datum fuuid_interval_of_us(int64 us);
extern uint64 fuuid_clock_lead_ns(const OrderingStats *stats);

#endif							/* FUUID_INSPECT_H */
