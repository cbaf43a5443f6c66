/*
 * settings.h
 *	  The settings of fast_uuid.
 */
#ifndef FUUID_SETTINGS_H
#define FUUID_SETTINGS_H

extern void fuuid_settings_init(void);

#endif							/* FUUID_SETTINGS_H */
