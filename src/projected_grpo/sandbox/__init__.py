"""Run untrusted Python and return plain values.

What it is: warm interpreters ("zygotes") that fork one short-lived, locked-in child per check. The child runs the
submission and reports values; whoever asked compares them. Nothing that a submission could want to know (expected
values, the verdict) is ever in its process or in one that it was forked from.

What it is not: protection against bugs of the kernel itself, or a limit on the host's caches and memory bandwidth. Two
checks of one zygote never run at the same time; checks of different zygotes share nothing but the CPU.

kernel     the few Linux calls that Python has no function for
seccomp    the list of system calls a check may make
landlock   the folders a check may read, where there are no namespaces
values     plain values as text: written by the child, compared by the trusted side
child      what happens in the fork: limits, layers, load the code, probe it
probes     what a loaded submission is asked
names      what can be told from names before anything runs
room       where the checks run: a root of its own, or a folder
watch      follows one check from outside
zygote     the warm process that forks the checks
wire       messages between a zygote and the trusted side
pool       the trusted side: starts zygotes, picks the layer, hands out jobs
"""
