/*
 * little_endian.h
 *	  Words of a random stream as bytes: least significant first, so that a
 *	  seed gives the same ids on every machine.
 */
#ifndef FUUID_LITTLE_ENDIAN_H
#define FUUID_LITTLE_ENDIAN_H

#include "port/pg_bswap.h"

static inline uint64
fuuid_le64(uint64 word)
{
#ifdef WORDS_BIGENDIAN
	return pg_bswap64(word);
#else
	return word;
#endif
}

#endif							/* FUUID_LITTLE_ENDIAN_H */
