/*
 * settings.h
 *	  The settings of fast_uuid as variables.
 */
#ifndef FU_SETTINGS_H
#define FU_SETTINGS_H

extern int	fu_source;			/* index into fu_entropy_sources */
extern int	fu_buffer_size;		/* bytes */
extern bool fu_vdso;

extern void fu_settings_init(void);

#endif							/* FU_SETTINGS_H */
