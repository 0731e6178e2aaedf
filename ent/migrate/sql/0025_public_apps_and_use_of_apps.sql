DROP INDEX "idleactivity_session_id";
ALTER TABLE "idle_activities" ADD COLUMN "app" character varying NOT NULL DEFAULT '';
CREATE UNIQUE INDEX "idleactivity_session_id_app" ON "idle_activities" ("session_id", "app");
ALTER TABLE "idle_checkers" ADD COLUMN "ignored_apps" jsonb NOT NULL DEFAULT '[]';
ALTER TABLE "resource_policies" ADD COLUMN "max_public_app_time" bigint NULL;
ALTER TABLE "idle_checkers" ALTER COLUMN "ignored_apps" DROP DEFAULT;
