"""The rules of a shape that slurm.conf cannot express, as Slurm's Lua plugins.

`cli_filter.lua` runs in sbatch and sees the options as they were written: forbidden and required ones.
`job_submit.lua` runs in the controller: accounts, features, QOS names and limits, time limits by size.
The QOS rules stand in for the QOS table of an accounting database, which each shape would have to start.
"""

from __future__ import annotations

from .shape_regex import lua_patterns
from .shapes import SiteShape

JOB_SUBMIT = """\
local NONE, NONE64 = {[0xfffffffe] = true, [0xffffffff] = true}, 0xfffffffffffffffe
local INVALID_ACCOUNT, INVALID_TIME, POLICY, INVALID_QOS, NODE_COUNT = 2045, 2051, 2050, 2066, 2006

local function given(value)
   return value ~= nil and value ~= "" and not NONE[value]
end

local function refuse(code, ...)
   slurm.log_user(...)
   return code
end

local function limits(what, limit, nodes, minutes)
   if limit.max_nodes and nodes > limit.max_nodes or limit.min_nodes and nodes < limit.min_nodes then
      return refuse(POLICY, "%s takes no job with %d nodes", what, nodes)
   end
   if limit.max_minutes and minutes and minutes > limit.max_minutes then
      return refuse(POLICY, "%s allows %d minutes", what, limit.max_minutes)
   end
   return slurm.SUCCESS
end

local function count(tres)
   return tonumber((tres or ""):match("gpu[:%w_.-]-[:=](%d+)$") or 0)
end

local function gpus(job, nodes)
   return math.max(count(job.tres_per_job), count(job.tres_per_node) * nodes)
end

local function check_account(job)
   if not given(job.account) then
      if rules.account then
         return refuse(INVALID_ACCOUNT, "an account is required: --account=NAME")
      end
      return slurm.SUCCESS
   end
   for _, pattern in ipairs(rules.accounts or {}) do
      if job.account:match(pattern) then
         return slurm.SUCCESS
      end
   end
   return rules.accounts and refuse(INVALID_ACCOUNT, "there is no account %s", job.account) or slurm.SUCCESS
end

local function check_features(job)
   if not rules.features then
      return slurm.SUCCESS
   end
   for word in (job.features or ""):gmatch("[%w_.-]+") do
      if rules.features[word] then
         return slurm.SUCCESS
      end
   end
   return refuse(slurm.ERROR, "Job request does not match any supported policy.")
end

local function check_qos(job, partition, nodes, minutes)
   local name = given(job.qos) and job.qos or rules.default_qos
   if not next(rules.qos) or not given(name) then
      return slurm.SUCCESS
   end
   local qos = rules.qos[name]
   if not qos or (partition and next(partition.qos) and not partition.qos[name]) then
      return INVALID_QOS
   end
   if qos.max_gpus and gpus(job, nodes) > qos.max_gpus then
      return refuse(POLICY, "QOS %s allows %d GPUs", name, qos.max_gpus)
   end
   return limits("QOS " .. name, qos, nodes, minutes)
end

local function check_bins(partition, nodes, minutes)
   for _, bin in ipairs(partition and partition.bins or {}) do
      if nodes >= bin.min_nodes and nodes <= bin.max_nodes then
         if minutes and minutes > bin.max_minutes then
            return refuse(INVALID_TIME, "jobs of %d nodes may run %d minutes", nodes, bin.max_minutes)
         end
         return slurm.SUCCESS
      end
   end
   if partition and next(partition.bins) then
      return refuse(NODE_COUNT, "no limit is set for jobs of %d nodes", nodes)
   end
   return slurm.SUCCESS
end

function slurm_job_submit(job, partitions, uid)
   local nodes = given(job.min_nodes) and job.min_nodes or 1
   local minutes = given(job.time_limit) and job.time_limit or nil
   local partition = rules.partitions[given(job.partition) and job.partition or rules.default_partition or ""]
   for _, code in ipairs({check_account(job), check_features(job),
      check_qos(job, partition, nodes, minutes), check_bins(partition, nodes, minutes)}) do
      if code ~= slurm.SUCCESS then
         return code
      end
   end
   job.qos = nil
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
"""

CLI_FILTER = """\
function slurm_cli_setup_defaults(options, early_pass)
   return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
   local stated = slurm.json_cli_options(options)  -- only what was written, or set by SBATCH_* variables
   local function is_stated(name)
      return stated:find('"' .. name .. '":', 1, true) ~= nil
   end
   for name, why in pairs(rules.forbidden) do
      if is_stated(name) then
         slurm.log_error("--%s is not allowed: %s", name, why)
         return slurm.ERROR
      end
   end
   local partition = is_stated("partition") and options["partition"] or rules.default_partition or ""
   for _, list in ipairs({rules.required, rules.partitions[partition] or {}}) do
      for _, names in ipairs(list) do
         local found = false
         for name in names:gmatch("[^|]+") do
            found = found or is_stated(name)
         end
         if not found then
            slurm.log_error("--%s is required", (names:gsub("|", " or --")))
            return slurm.ERROR
         end
      end
   end
   return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
   return slurm.SUCCESS
end

return slurm.SUCCESS
"""


def lua(value: object) -> str:
    """A Python value as a Lua expression; None values of a mapping are left out."""
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, dict):
        pairs = [f"[{lua(key)}] = {lua(item)}" for key, item in value.items() if item is not None]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "{" + ", ".join(lua(item) for item in value) + "}"
    if value is None:
        return "nil"
    raise TypeError(f"no Lua for {type(value).__name__}")


def _names(names: tuple[str, ...]) -> dict[str, bool]:
    return dict.fromkeys(names, True)


def _default_partition(shape: SiteShape) -> str | None:
    return next((part.name for part in shape.partitions if part.default), None)


def server_rules(shape: SiteShape) -> dict[str, object]:
    """The table that the controller's Lua code reads."""
    return {
        "account": "account" in shape.required,
        "accounts": None if shape.account_pattern is None else lua_patterns(shape.account_pattern),
        "features": None if shape.feature_required is None else _names(shape.feature_required),
        "qos": {qos.name: {**vars(qos), "name": None, "default": None} for qos in shape.qos},
        "default_qos": next((qos.name for qos in shape.qos if qos.default), None),
        "partitions": {
            part.name: {"qos": _names(part.qos), "bins": [vars(size) for size in part.bins]}
            for part in shape.partitions
        },
        "default_partition": _default_partition(shape),
    }


def client_rules(shape: SiteShape) -> dict[str, object]:
    """The table that sbatch's Lua code reads."""
    return {
        "forbidden": dict(shape.forbidden),
        "required": [names for names in shape.required if names != "account"],
        "partitions": {part.name: list(part.required) for part in shape.partitions},
        "default_partition": _default_partition(shape),
    }


def job_submit(shape: SiteShape) -> str:
    return f"local rules = {lua(server_rules(shape))}\n{JOB_SUBMIT}"


def cli_filter(shape: SiteShape) -> str:
    return f"local rules = {lua(client_rules(shape))}\n{CLI_FILTER}"
