ALTER TABLE "image_versions" ADD COLUMN "signed_by" character varying NOT NULL DEFAULT '';
ALTER TABLE "images" ADD COLUMN "signed_by" character varying NOT NULL DEFAULT '';
ALTER TABLE "registries" ADD COLUMN "signature_keys" text NOT NULL DEFAULT '', ADD COLUMN "webhook_hash" bytea NULL, ADD COLUMN "sweep_every" bigint NOT NULL DEFAULT 86400, ADD COLUMN "retention" jsonb NOT NULL DEFAULT '[]', ADD COLUMN "last_sweep" jsonb NULL, ADD COLUMN "sweep_due_at" timestamptz NULL;
ALTER TABLE "registries" ALTER COLUMN "retention" DROP DEFAULT;
