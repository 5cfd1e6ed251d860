-- Told for the first time, it counts also if the lease has ended. Told again, it may have been
-- heard before, and counts only if the lease is still there.
if free(ARGV[1]) or ARGV[3] == 'first' then
  redis.call('HSET', budget, 'spent', math.min(number('spent') + ARGV[2], MOST))
end
return 0
