ALTER TABLE "image_copies" ADD COLUMN "message" text NOT NULL DEFAULT '';
ALTER TABLE "registries" ADD COLUMN "lazy_start" boolean NOT NULL DEFAULT false;
