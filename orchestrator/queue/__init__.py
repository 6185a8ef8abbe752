"""The durable queue, by what is to be changed:

queue           what scheduler and workers do with it
decisions       what a person decides
adding          tasks into it
claims          leases and fencing tokens
transitions     the one place where a task changes its state
progress        facts of an attempt, folded into its row
failures        what follows when an attempt cannot go on
merge_records   merges, written down before a branch moves
token_counts    what a stored count may be
"""
