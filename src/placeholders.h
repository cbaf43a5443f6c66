/*
 * placeholders.h
 *	  Settings that were made before the library is loaded.
 */
#ifndef FUUID_PLACEHOLDERS_H
#define FUUID_PLACEHOLDERS_H

extern const char *fuuid_placeholder_value(const char *name);
extern void fuuid_placeholder_keep_resets(const char *name);

#endif							/* FUUID_PLACEHOLDERS_H */
