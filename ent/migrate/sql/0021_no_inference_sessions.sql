-- No session can have the type inference. A group or checker that allowed nothing else is switched off.
UPDATE "resource_groups" SET "session_types" = '["interactive", "batch"]', "active" = false WHERE "session_types" = '["inference"]';
UPDATE "resource_groups" SET "session_types" = "session_types" - 'inference' WHERE "session_types" ? 'inference';
UPDATE "idle_checkers" SET "session_types" = '["interactive"]', "enabled" = false WHERE "session_types" = '["inference"]';
UPDATE "idle_checkers" SET "session_types" = "session_types" - 'inference' WHERE "session_types" ? 'inference';
