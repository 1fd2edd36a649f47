/* Within harness/config: blanks. */
#ifndef MLBENCH_CONFIG_TEXT_H
#define MLBENCH_CONFIG_TEXT_H

/* Cuts the blanks off the end and returns the first letter that is none. */
char *text_trim(char *text);

#endif
