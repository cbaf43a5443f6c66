/*
 * ordering.c
 *	  State behind the strict order of values.
 */
#include "postgres.h"

#include "ordering.h"

uint64		fu_ordering_last_ns = 0;
