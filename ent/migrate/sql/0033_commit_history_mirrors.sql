ALTER TABLE "registries" ADD COLUMN "mirrors" jsonb NOT NULL DEFAULT '[]', ADD COLUMN "mirrors_sealed" bytea NULL;
ALTER TABLE "image_versions" ADD COLUMN "session_id" uuid NULL, ADD COLUMN "base" character varying NOT NULL DEFAULT '', ADD COLUMN "added_bytes" bigint NOT NULL DEFAULT 0, ADD COLUMN "creator_id" uuid NULL, ADD CONSTRAINT "image_versions_users_creator" FOREIGN KEY ("creator_id") REFERENCES "users" ("id") ON DELETE SET NULL;
CREATE INDEX "imageversion_creator_id" ON "image_versions" ("creator_id");
ALTER TABLE "registries" ALTER COLUMN "mirrors" DROP DEFAULT;
