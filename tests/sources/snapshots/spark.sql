-- plain
SELECT
  `pairs`.`item`,
  COUNT(*) AS `persons`
FROM (
  SELECT DISTINCT
    MAKE_VALID_UTF8(CAST(`events`.`place` AS STRING)) AS `item`,
    `events`.`user` AS `person`
  FROM `public`.`visits` AS `events`
  WHERE
    NOT `events`.`place` IS NULL AND NOT `events`.`user` IS NULL
) AS `pairs`
GROUP BY
  `pairs`.`item`
ORDER BY
  `persons` DESC,
  `pairs`.`item` ASC
LIMIT 201;

-- capped
SELECT
  `choices`.`item`,
  COUNT(*) AS `persons`
FROM (
  SELECT
    `pairs`.`item`,
    ROW_NUMBER() OVER (
      PARTITION BY `pairs`.`person`
      ORDER BY MD5(
        '000102030405060708090a0b0c0d0e0f' || CAST(LENGTH(CAST(`pairs`.`person` AS STRING)) AS STRING) || ':' || CAST(`pairs`.`person` AS STRING) || CAST(LENGTH(CAST(`pairs`.`item` AS STRING)) AS STRING) || ':' || CAST(`pairs`.`item` AS STRING)
      ) ASC, `pairs`.`item` ASC
    ) AS `choice`
  FROM (
    SELECT DISTINCT
      MAKE_VALID_UTF8(CAST(`events`.`place` AS STRING)) AS `item`,
      `events`.`user` AS `person`
    FROM `public`.`visits` AS `events`
    WHERE
      NOT `events`.`place` IS NULL AND NOT `events`.`user` IS NULL
  ) AS `pairs`
) AS `choices`
WHERE
  `choices`.`choice` <= 3
GROUP BY
  `choices`.`item`
ORDER BY
  `persons` DESC,
  `choices`.`item` ASC
LIMIT 201;

-- several
SELECT
  `choices`.`item_1`,
  `choices`.`item_2`,
  COUNT(*) AS `persons`
FROM (
  SELECT
    `pairs`.`item_1`,
    `pairs`.`item_2`,
    ROW_NUMBER() OVER (
      PARTITION BY `pairs`.`person`
      ORDER BY MD5(
        '000102030405060708090a0b0c0d0e0f' || CAST(LENGTH(CAST(`pairs`.`person` AS STRING)) AS STRING) || ':' || CAST(`pairs`.`person` AS STRING) || CAST(LENGTH(CAST(`pairs`.`item_1` AS STRING)) AS STRING) || ':' || CAST(`pairs`.`item_1` AS STRING) || CAST(LENGTH(CAST(`pairs`.`item_2` AS STRING)) AS STRING) || ':' || CAST(`pairs`.`item_2` AS STRING)
      ) ASC, `pairs`.`item_1` ASC, `pairs`.`item_2` ASC
    ) AS `choice`
  FROM (
    SELECT DISTINCT
      MAKE_VALID_UTF8(CAST(`events`.`city` AS STRING)) AS `item_1`,
      MAKE_VALID_UTF8(CAST(`events`.`place` AS STRING)) AS `item_2`,
      `events`.`user` AS `person`
    FROM `public`.`visits` AS `events`
    WHERE
      NOT `events`.`city` IS NULL
      AND NOT `events`.`place` IS NULL
      AND NOT `events`.`user` IS NULL
      AND CAST(`events`.`city` AS STRING) IN ('Zürich', 'O\'Hare\\')
      AND `events`.`age` >= 18
      AND `events`.`open` = TRUE
  ) AS `pairs`
) AS `choices`
WHERE
  `choices`.`choice` <= 3
GROUP BY
  `choices`.`item_1`,
  `choices`.`item_2`
ORDER BY
  `persons` DESC,
  `choices`.`item_1` ASC,
  `choices`.`item_2` ASC
LIMIT 201;

-- expression
SELECT
  `pairs`.`item`,
  COUNT(*) AS `persons`
FROM (
  SELECT DISTINCT
    CAST(EXTRACT(HOUR FROM CASE WHEN YEAR(`events`.`time`) BETWEEN 1 AND 9999 THEN `events`.`time` END) AS BIGINT) AS `item`,
    `events`.`user` AS `person`
  FROM `public`.`visits` AS `events`
  WHERE
    NOT EXTRACT(HOUR FROM CASE WHEN YEAR(`events`.`time`) BETWEEN 1 AND 9999 THEN `events`.`time` END) IS NULL
    AND NOT `events`.`user` IS NULL
    AND (
      LOWER(CAST(`events`.`city` AS STRING)) = 'bonn'
      AND (
        `events`.`age` BETWEEN 18 AND 65 OR `events`.`age` IS NULL
      )
    )
) AS `pairs`
GROUP BY
  `pairs`.`item`
ORDER BY
  `persons` DESC,
  `pairs`.`item` ASC
LIMIT 25;
