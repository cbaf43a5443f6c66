/*
 * watermark.h
 *	  The watermark, for those who report on it.
 */
#ifndef FUUID_WATERMARK_H
#define FUUID_WATERMARK_H

#include "in_flight.h"
#include "utils/uuid.h"

extern pg_uuid_t *fuuid_watermark_uuid(uint64 ns);
extern bool fuuid_watermark_stats(uint64 *watermark_ns, InFlightHolder *holder);

#endif							/* FUUID_WATERMARK_H */
