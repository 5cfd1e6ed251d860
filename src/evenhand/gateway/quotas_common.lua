-- A tenant's keys. times: when the latest requests came, the latest first. leases: id:tokens of
-- those under way, by when they end at the latest. budget: tokens reserved, and spent on a day.
-- DAY is in seconds, MINUTE and PAUSE in microseconds.
local times, leases, budget = KEYS[1], KEYS[2], KEYS[3]
local clock = redis.call('TIME')
local now, day = clock[1] * 1000000 + clock[2], math.floor(clock[1] / DAY)

local function free(lease)
  if redis.call('ZREM', leases, lease) == 0 then return false end
  redis.call('HINCRBY', budget, 'reserved', 0 - string.match(lease, '%d+$'))
  return true
end

local function number(field) return tonumber(redis.call('HGET', budget, field) or 0) end

if day > number('day') then redis.call('HSET', budget, 'day', day, 'spent', 0) end
redis.call('EXPIRE', budget, 2 * DAY)
