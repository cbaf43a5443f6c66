/*
 * require_session.h
 *	  Which processes may generate UUIDs, or use their order.
 */
#ifndef FUUID_REQUIRE_SESSION_H
#define FUUID_REQUIRE_SESSION_H

extern void fuuid_require_session(const char *what);

#endif							/* FUUID_REQUIRE_SESSION_H */
