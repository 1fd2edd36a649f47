/* The script inside flame.svg. */
#ifndef MLBENCH_REPORT_FLAME_SCRIPT_H
#define MLBENCH_REPORT_FLAME_SCRIPT_H

extern const char flame_script[];

#endif
