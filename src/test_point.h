/*
 * test_point.h
 *	  Points at which a test build ("make TEST_POINTS=yes") can be held up, to
 *	  force an interleaving.  Other builds have none.
 */
#ifndef FUUID_TEST_POINT_H
#define FUUID_TEST_POINT_H

#ifdef FUUID_TEST_POINTS

/* In test/modules/test_points.c, which must be loaded before this library. */
extern void fuuid_test_point(const char *name);
#define FUUID_TEST_POINT(name) fuuid_test_point(name)
#else
#define FUUID_TEST_POINT(name) ((void) 0)
#endif

#endif							/* FUUID_TEST_POINT_H */
