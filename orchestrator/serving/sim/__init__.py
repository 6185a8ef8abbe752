"""The simulated engine: a server with vLLM's surface, whose clock, cache and counters behave like a real engine's and whose texts come from scripts.

profile    how fast and how large the simulated engine is     tokens     the tokenizer, and words to fill a length
blocks     KV blocks with a prefix cache                       scheduler  continuous batching, without a clock of its own
clock      the scheduler in real time                          metrics    vLLM's counters and histograms
script     what a task's replies are                           reply      what one request is answered
wire       bodies in and errors out                            stream     an answer on its way out, written by `frames`
faults     what goes wrong on purpose                          server     the routes
    virtual    the scheduler without waiting
"""
