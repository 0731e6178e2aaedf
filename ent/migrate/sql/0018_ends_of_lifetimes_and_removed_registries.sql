-- A session that a policy ended had the reason of a start that took too long, and a code of its own in the history.
UPDATE "sessions" SET "termination_reason" = 'lifetime' WHERE "termination_reason" = 'deadline_exceeded'
  AND EXISTS (SELECT 1 FROM "session_events" e WHERE e."session_id" = "sessions"."id" AND e."code" = 'session_lifetime');
UPDATE "session_events" SET "code" = 'lifetime' WHERE "code" = 'deadline_exceeded'
  AND EXISTS (SELECT 1 FROM "session_events" e WHERE e."session_id" = "session_events"."session_id" AND e."code" = 'session_lifetime');
UPDATE "session_events" SET "code" = 'lifetime' WHERE "code" = 'session_lifetime';
ALTER TABLE "images" DROP CONSTRAINT "images_registries_images", ALTER COLUMN "registry_id" DROP NOT NULL, ADD CONSTRAINT "images_registries_images" FOREIGN KEY ("registry_id") REFERENCES "registries" ("id") ON DELETE SET NULL;
