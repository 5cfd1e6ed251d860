-- It gives which bound is used up (0: none, all is taken) and how long to wait (-1: no use), in µs.
local lease, longest = ARGV[1], tonumber(ARGV[2])
local a_minute, at_once, a_day = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local tokens = tonumber(ARGV[6])

for _, ended in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now)) do free(ended) end
local under_way = redis.call('ZCARD', leases)
if under_way == 0 then redis.call('HSET', budget, 'reserved', 0) end

if a_minute == 0 then return {1, -1} end
if a_minute > 0 then
  local oldest = redis.call('LINDEX', times, a_minute - 1)
  local left = oldest and oldest + MINUTE - now or 0
  if left > 0 then return {1, left} end
end
if at_once >= 0 and under_way >= at_once then
  return {2, at_once == 0 and -1 or PAUSE}
end
if a_day >= 0 and number('spent') + number('reserved') + tokens > a_day then
  return {3, tokens > a_day and -1 or (day + 1) * DAY * 1000000 - now}
end

if a_minute > 0 then
  redis.call('LPUSH', times, now)
  redis.call('LTRIM', times, 0, a_minute - 1)
  redis.call('PEXPIRE', times, MINUTE / 1000)
end
redis.call('ZADD', leases, now + longest, lease)
redis.call('EXPIRE', leases, 2 * DAY)
redis.call('HINCRBY', budget, 'reserved', ARGV[6])
return {0, 0}
