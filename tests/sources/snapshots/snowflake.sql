-- plain
SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    COLLATE(CAST("events"."place" AS VARCHAR), 'utf8') AS "item",
    "events"."user" AS "person"
  FROM "public"."visits" AS "events"
  WHERE
    NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 201;

-- capped
SELECT
  "choices"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT
    "pairs"."item",
    ROW_NUMBER() OVER (
      PARTITION BY "pairs"."person"
      ORDER BY MD5(
        '000102030405060708090a0b0c0d0e0f' || CAST(LENGTH(CAST("pairs"."person" AS VARCHAR)) AS VARCHAR) || ':' || CAST("pairs"."person" AS VARCHAR) || CAST(LENGTH(CAST("pairs"."item" AS VARCHAR)) AS VARCHAR) || ':' || CAST("pairs"."item" AS VARCHAR)
      ) ASC, "pairs"."item" ASC
    ) AS "choice"
  FROM (
    SELECT DISTINCT
      COLLATE(CAST("events"."place" AS VARCHAR), 'utf8') AS "item",
      "events"."user" AS "person"
    FROM "public"."visits" AS "events"
    WHERE
      NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
  ) AS "pairs"
) AS "choices"
WHERE
  "choices"."choice" <= 3
GROUP BY
  "choices"."item"
ORDER BY
  "persons" DESC,
  "choices"."item" ASC
LIMIT 201;

-- several
SELECT
  "choices"."item_1",
  "choices"."item_2",
  COUNT(*) AS "persons"
FROM (
  SELECT
    "pairs"."item_1",
    "pairs"."item_2",
    ROW_NUMBER() OVER (
      PARTITION BY "pairs"."person"
      ORDER BY MD5(
        '000102030405060708090a0b0c0d0e0f' || CAST(LENGTH(CAST("pairs"."person" AS VARCHAR)) AS VARCHAR) || ':' || CAST("pairs"."person" AS VARCHAR) || CAST(LENGTH(CAST("pairs"."item_1" AS VARCHAR)) AS VARCHAR) || ':' || CAST("pairs"."item_1" AS VARCHAR) || CAST(LENGTH(CAST("pairs"."item_2" AS VARCHAR)) AS VARCHAR) || ':' || CAST("pairs"."item_2" AS VARCHAR)
      ) ASC, "pairs"."item_1" ASC, "pairs"."item_2" ASC
    ) AS "choice"
  FROM (
    SELECT DISTINCT
      COLLATE(CAST("events"."city" AS VARCHAR), 'utf8') AS "item_1",
      COLLATE(CAST("events"."place" AS VARCHAR), 'utf8') AS "item_2",
      "events"."user" AS "person"
    FROM "public"."visits" AS "events"
    WHERE
      NOT "events"."city" IS NULL
      AND NOT "events"."place" IS NULL
      AND NOT "events"."user" IS NULL
      AND COLLATE(CAST("events"."city" AS VARCHAR), 'utf8') IN ('Zürich', 'O\'Hare\\')
      AND "events"."age" >= 18
      AND "events"."open" = TRUE
  ) AS "pairs"
) AS "choices"
WHERE
  "choices"."choice" <= 3
GROUP BY
  "choices"."item_1",
  "choices"."item_2"
ORDER BY
  "persons" DESC,
  "choices"."item_1" ASC,
  "choices"."item_2" ASC
LIMIT 201;

-- expression
SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    CAST(DATE_PART(HOUR, "events"."time") AS BIGINT) AS "item",
    "events"."user" AS "person"
  FROM "public"."visits" AS "events"
  WHERE
    NOT DATE_PART(HOUR, "events"."time") IS NULL
    AND NOT "events"."user" IS NULL
    AND (
      LOWER(COLLATE(CAST("events"."city" AS VARCHAR), 'utf8')) = 'bonn'
      AND (
        "events"."age" BETWEEN 18 AND 65 OR "events"."age" IS NULL
      )
    )
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 25;
