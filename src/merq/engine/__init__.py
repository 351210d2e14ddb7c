"""What decides: the queue manager's rules, pure. Time and chance come in, effects go out.

`manager` has every operation; `readers`, `transactions` and `notices` have the rules for reading,
units of work and what is written about messages; `state` is what is known, and how `changes` come
to pass; `queue`, `positions` and `cursor` are the nouns; `records` and `snapshot` what of it lasts;
`ports` what is needed of the world.
"""
