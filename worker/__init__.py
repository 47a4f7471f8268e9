"""The process that runs workflows, their short activities and executions."""
