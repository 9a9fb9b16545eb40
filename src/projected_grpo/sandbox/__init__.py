"""Run untrusted Python and return plain values.

What it is: warm interpreters ("zygotes") that fork one short-lived, locked-in child per check. The child runs the
submission and reports values; whoever asked compares them. Nothing that a submission could want to know (expected
values, the verdict) is ever in its process or in one that it was forked from, and nothing of another submission: a
check's code and arguments pass through the zygote in a file that it does not read.

What it is not: protection against bugs of the kernel itself, or a limit on the host's caches and memory bandwidth. Two
checks of one zygote never run at the same time; checks of different zygotes share nothing but the CPU
(docs/grading.md, "Letter boxes", says per layer what that means). An answer that
exists in the submission's process alone can be forged by code that reaches native memory (docs/grading.md).

kernel     the few Linux calls that Python has no function for
seccomp    the list of system calls a check may make
landlock   the folders a check may read, where there are no namespaces
values     plain values as text: written by the child, compared by the trusted side
child      what happens in the fork: limits, layers
reasons    why a submission failed, for people
exchange   values by copy, for a check that runs in a process of its own
candidate  calls a submission's functions for such a check
harness    what reports from a check: load the code, ask, write frames
fifo       pipes and socket pairs that no counter of the host numbers
maps       anonymous memory, never shared
probes     what a loaded submission is asked, and the frame that it runs under
room       where the checks run: a root of its own, or a folder
zygote     the warm process that forks the checks
wire       messages between a zygote and the trusted side
worker     one zygote, seen from the trusted side
watch      follows one check from the trusted side
levels     which layer works here
pool       hands out jobs
"""
