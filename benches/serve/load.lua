-- What wrk asks: LOAD is `single` (a signature), `batch` (1,000 of them) or `seen` (100 documents to be added unless they
-- were seen). QUERIES is a file of signatures, a line each in hexadecimal digits.
local load = os.getenv("LOAD")
local signatures = {}
for line in io.lines(os.getenv("QUERIES")) do
  signatures[#signatures + 1] = line
end

-- Threads begin at different places, so that they do not ask the same at the same time.
local threads = 0
function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

local next_signature = 0
local prefix = ""
function init()
  next_signature = math.floor(#signatures / 7) * number
  prefix = tostring(os.time()) .. "-" .. number .. "-"
end

local function take()
  next_signature = next_signature % #signatures + 1
  return signatures[next_signature]
end

local many = { single = 1, batch = 1000, seen = 100 }
local paths = { single = "/v1/search", batch = "/v1/search", seen = "/v1/seen?radius=3" }
local headers = { ["Content-Type"] = "application/json" }

-- Batches are made beforehand: what is measured is the server, not Lua.
local bodies = {}
local function batch()
  local queries = {}
  for i = 1, many.batch do
    queries[i] = '{"signature":"' .. take() .. '"}'
  end
  return '{"radius":3,"queries":[' .. table.concat(queries, ",") .. "]}"
end

-- New documents each time: random signatures, which nothing is near, and one in ten that was there before.
local added = 0
local function documents()
  local all = {}
  for i = 1, many.seen do
    added = added + 1
    local signature = take()
    if added % 10 ~= 0 then
      signature = string.format("%08x%08x", math.random(0, 0xffffffff), math.random(0, 0xffffffff))
    end
    all[i] = '{"id":"' .. prefix .. added .. '","signature":"' .. signature .. '"}'
  end
  return "[" .. table.concat(all, ",") .. "]"
end

function request()
  local body
  if load == "single" then
    body = '{"signature":"' .. take() .. '","radius":3}'
  elseif load == "batch" then
    next_signature = next_signature + 1
    local at = next_signature % 50 + 1
    bodies[at] = bodies[at] or batch()
    body = bodies[at]
  else
    body = documents()
  end
  return wrk.format("POST", paths[load], headers, body)
end

-- Anything but 200 counts as a mistake.
local wrong = 0
function response(status)
  if status ~= 200 then
    wrong = wrong + 1
    if wrong <= 3 then io.stderr:write("status " .. status .. "\n") end
  end
end

function done(summary, latency, requests)
  local seconds = summary.duration / 1e6
  local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout
  io.write(string.format('{"load":"%s","calls_a_second":%.0f,"a_second":%.0f,"p50_ms":%.2f,"p99_ms":%.2f,"max_ms":%.2f,"errors":%d}\n',
    load, summary.requests / seconds, summary.requests * many[load] / seconds,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3, errors))
end
